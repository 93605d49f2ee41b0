"""MLPerf's run_pretraining.py: its published commands, its arithmetic, and what it refuses."""

import pytest

from tests.support.published_commands import assert_equal, commands, substituted, understood
from tests.support.training_runs import refuse

PROGRAM = "mlperf/run_pretraining.py"
PUBLISHED = {one["id"]: one for one in commands("mlperf run_pretraining.py")}
FILES = ["--bert_config_file=bert_config.json", "--output_dir=out", "--input_file=data/part*"]
TRAINING = [*FILES, "--do_train"]
EVALUATION = [*FILES, "--do_eval", "--nodo_train"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A directory without files, and no environment variables of TensorFlow."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TF_XLA_FLAGS", raising=False)


def phase(*arguments: str) -> dict[str, object]:
    (found,) = understood(PROGRAM, [*TRAINING, *arguments])["phases"]
    return dict(found)


def evaluation(*arguments: str) -> dict[str, object]:
    found = understood(PROGRAM, [*EVALUATION, *arguments])
    assert found["phases"] == []
    return dict(found["evaluate"])


@pytest.mark.parametrize("name", [name for name, one in PUBLISHED.items() if one["kind"] == "train"])
def test_a_published_training_has_all_values_of_the_original(name):
    command = PUBLISHED[name]
    found = understood(PROGRAM, command["argv"][1:])["phases"]
    for keys, wanted in zip(found, command["expects"]["phases"], strict=True):
        assert_equal(keys, wanted)


@pytest.mark.parametrize("name", [name for name, one in PUBLISHED.items() if one["kind"] == "evaluate"])
def test_a_published_evaluation_has_all_values_of_the_original(name, tmp_path):
    command = PUBLISHED[name]
    wanted = dict(command["expects"]["evaluate"])
    if not wanted["poll"]:
        (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-597"\n')
        wanted |= {"output_dir": str(tmp_path), "resume_step": 597}
    words = substituted(command["argv"][1:], {"${output_path}": tmp_path, "${step_num}": "597"})
    assert_equal(understood(PROGRAM, words)["evaluate"], wanted, ["checkpoint"])


def test_defaults_are_the_programs():
    wanted = {
        "device": "cpu",
        "world_size": 1,
        "batch_size": 32,
        "accumulation": 1,
        "max_seq_length": 128,
        "max_predictions_per_seq": 20,
        "optimiser": "adamw-bert",
        "use_debiasing": False,
        "optimiser_epsilon": 1e-6,
        "weight_decay": 0.01,
        "clipping": "per_micro_batch",
        "lr_schedule": "mlperf",
        "base_learning_rate": 5e-5,
        "power": 1.0,
        "steps": 100_000,
        "warmup": 10_000,
        "start_warmup_step": 0,
        "checkpoint_every": 1000,
        "keep_checkpoints": 5,
        "start_from_ckpt": None,
        "resume": False,
        "unverified": True,
        "gelu": "tanh",
        "hidden_act": "gelu",
        "eval_data": None,
        "compile": False,
    }
    assert_equal(phase(), wanted)


def test_all_steps_are_micro_steps():
    found = phase(
        *("--optimizer=lamb", "--steps_per_update=4", "--num_train_steps=2400", "--num_warmup_steps=1148"),
        *("--start_warmup_step=-304", "--save_checkpoints_steps=12", "--train_batch_size=64", "--num_gpus=2"),
    )
    wanted = {"steps": 600, "warmup": 287, "start_warmup_step": -76, "checkpoint_every": 3, "accumulation": 4}
    assert_equal(found, wanted | {"batch_size": 32, "update_examples": 256, "device": "cuda", "dist": True})


def test_lambs_constants_are_those_of_its_flags():
    flags = ("--lamb_beta_1=0.8", "--lamb_beta_2=0.88", "--lamb_weight_decay_rate=0.1", "--log_epsilon=-5")
    wanted = {"optimiser": "lamb-mlperf", "beta1": 0.8, "beta2": 0.88, "weight_decay": 0.1}
    assert_equal(phase("--optimizer=lamb", *flags), wanted | {"optimiser_epsilon": 1e-5})
    wanted = {"optimiser": "adamw-bert", "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.01}
    assert_equal(phase(*flags), wanted | {"optimiser_epsilon": 1e-6})


@pytest.mark.parametrize(
    ("optimiser", "flag", "wanted"),
    [
        ("lamb", "--noclip_by_global_norm_after_gradient_allreduce", "per_micro_batch"),
        ("lamb", "--clip_by_global_norm_after_gradient_allreduce", "per_update"),
        ("adamw", "--clip_by_global_norm_after_gradient_allreduce", "none"),
    ],
)
def test_clipping_after_the_reduction_is_lambs_alone(optimiser, flag, wanted):
    assert phase(f"--optimizer={optimiser}", flag)["clipping"] == wanted


def test_a_tpu_goes_before_gpus_and_divides_by_its_cores():
    found = phase("--use_tpu", "--num_gpus=2", "--num_tpu_cores=16", "--train_batch_size=64")
    assert_equal(found, {"device": "xla", "world_size": 16, "batch_size": 4})


def test_a_run_within_its_warm_up_has_the_same_rates():
    """A schedule of this trainer is longer than its warm-up; the rate of each update is the same."""
    wanted = {"steps": 10_001, "steps_this_run": 50, "warmup": 10_000}
    assert_equal(phase("--num_train_steps=50"), wanted)


def test_a_checkpoint_in_the_output_directory_is_continued_unasked(tmp_path):
    (tmp_path / "out" / "checkpoints" / "step-00000002").mkdir(parents=True)
    assert_equal(phase("--init_checkpoint=start"), {"resume": True, "start_from_ckpt": "start"})


def test_the_models_file_is_taken_where_it_is_there(tmp_path):
    (tmp_path / "bert_config.json").write_text('{"hidden_size": 64, "hidden_act": "gelu"}')
    assert_equal(phase(), {"model_config": "bert_config.json", "hidden_size": 64, "num_hidden_layers": None})


def test_xlas_environment_variable_compiles(monkeypatch):
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_auto_jit=2")
    assert phase()["compile"] is True


def test_training_and_evaluation_together_read_the_same_file():
    found = phase("--do_eval", "--max_eval_steps=10")
    assert_equal(found, {"eval_data": "data/part*", "eval_every": 0, "eval_examples": 80})


def test_each_replica_evaluates_its_own_batches_of_the_same_records():
    gpus = evaluation("--num_gpus=2", "--eval_batch_size=8", "--max_eval_steps=1250")
    assert_equal(gpus, {"eval_batch_size": 8, "eval_examples": 5000, "device": "cuda"})
    assert "eval_batch_size_per_core" not in gpus
    cores = evaluation("--use_tpu", "--num_tpu_cores=4", "--eval_batch_size=40", "--max_eval_steps=7")
    assert_equal(cores, {"eval_batch_size": 40, "eval_batch_size_per_core": 10, "eval_examples": 70})


@pytest.mark.parametrize("flags", [(), ("--steps_per_update=4",)])
def test_an_evaluation_counts_micro_steps_as_the_training_does(flags):
    assert evaluation("--num_train_steps=600", *flags)["until_step"] == 600


def test_this_trainers_flags_go_before_an_evaluations():
    found = evaluation("--num_gpus=1", "--", "--device=cpu", "--eval-examples=3")
    assert_equal(found, {"device": "cpu", "eval_examples": 3})


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (FILES, "At least one of `do_train` or `do_eval` must be True."),
        (TRAINING[1:], "Flag --bert_config_file must have a value other than None."),
        ([*TRAINING, "--num_gpus=5"], "try --train_batch_size=30 instead"),
        ([*EVALUATION, "--num_gpus=3"], "try --eval_batch_size=6 instead"),
        ([*TRAINING, "--use_tpu", "--num_tpu_cores=5"], "train batch size 32 must be divisible by"),
        ([*TRAINING, "--num_gpus=-1"], "`num_gpus` can not be negative."),
        ([*TRAINING, "--optimizer=sgd"], "invalid choice: 'sgd'"),
        (
            [*TRAINING, "--lamb_beta1=0.9"],
            "Unknown command line flag 'lamb_beta1'. Did you mean: lamb_beta_1 ?",
        ),
    ],
)
def test_what_the_program_refuses_is_refused_in_its_words(trainer, flags, said):
    refuse(trainer("like", PROGRAM, *flags, "--print-config"), 2, said)


def test_files_that_are_not_there_hinder_a_run_only(trainer):
    printed = trainer("like", PROGRAM, *TRAINING, "--print-config")
    assert (printed.status, "BERT-Large, is shown" in printed.err) == (0, True)
    refuse(trainer("like", PROGRAM, *TRAINING), 2, "bert_config.json: is not on this machine")


@pytest.mark.parametrize("what", [("--do_train",), ("--do_eval",)])
def test_a_run_at_a_url_is_printed(trainer, tmp_path, what):
    (tmp_path / "bert_config.json").write_text("{}")
    flags = [*FILES, *what, "--output_dir=gs://bucket/run"]
    assert trainer("like", PROGRAM, *flags, "--print-config").status == 0


def test_the_step_that_tensorflows_state_file_names_is_evaluated_once(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-12"\nmore: "x-7"\n')
    assert_equal(evaluation("--steps_per_update=4"), {"poll": False, "resume_step": 12})
