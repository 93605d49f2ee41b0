"""NVIDIA's run_pretraining.py for TensorFlow: its batches and rates, its evaluation, what it refuses."""

import json

import pytest

from bertdata.errors import UsageError
from tests.support.published_commands import assert_equal, understood
from trainer.programs.choice import find_program
from trainer.programs.nvidia_tf.run_pretraining import translate

NAME = "nvidia-tf/run_pretraining.py"
PROGRAM = find_program(NAME)
SHAPE = {"vocab_size": 30522, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
REQUIRED = ("--input_files_dir=a,b", "--bert_config_file=bert_config.json", "--output_dir=run")


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bert_config.json").write_text(json.dumps(SHAPE | {"hidden_act": "gelu"}))


@pytest.fixture
def eight_workers(monkeypatch):
    for name, value in {"HOROVOD_RANK": "0", "HOROVOD_SIZE": "8"}.items():
        monkeypatch.setenv(name, value)


def phase(*words: str) -> dict[str, object]:
    (found,) = understood(NAME, [*REQUIRED, *words])["phases"]
    return dict(found)


def test_the_published_command_trains_on_65536_examples_an_update(eight_workers):
    (found,) = understood(NAME, PROGRAM.published[0].split())["phases"]
    assert_equal(found, SHAPE | {"device": "cuda", "precision": "fp16", "gelu": "tanh", "world_size": 8})
    assert_equal(found, {"batch_size": 64, "accumulation": 128, "update_examples": 65536})
    assert_equal(found, {"optimiser": "lamb-habana-tf", "optimiser_epsilon": 1e-6, "weight_decay": 0.01})
    assert_equal(found, {"lr_schedule": "habana-tf", "base_learning_rate": 7.5e-4, "warmup": 2000})
    assert_equal(found, {"steps": 7038, "checkpoint_every": 100, "keep_checkpoints": 5, "log_every": 10})
    assert_equal(found, {"clipping": "per_micro_batch_divided", "max_grad_norm": 1.0, "resume": True})
    assert_equal(found, {"init_loss_scale": 2.0**32, "allreduce_post_accumulation": True})
    assert_equal(found, {"train_data": "tfrecord/training", "eval_data": "tfrecord/test", "eval_every": 0})
    assert_equal(found, {"eval_examples": 800, "eval_batch_size": 8, "max_seq_length": 128})


def test_defaults_are_the_programs():
    found = phase("--do_train")
    assert_equal(found, {"steps": 100000, "warmup": 10000, "base_learning_rate": 5e-5, "precision": "fp32"})
    assert_equal(found, {"batch_size": 32, "accumulation": 1, "max_seq_length": 512, "compile": False})
    assert_equal(found, {"max_predictions_per_seq": 80, "checkpoint_every": 1000, "eval_data": None})
    assert_equal(found, {"train_data": "a,b", "start_from_ckpt": None, "world_size": 1, "do_train": True})


def test_one_micro_batch_of_several_workers_is_clipped_after_the_all_reduce(eight_workers):
    assert phase("--do_train", "--horovod")["clipping"] == "per_update"
    assert phase("--do_train")["world_size"] == 1


def test_adam_decays_the_weights_and_corrects_no_bias():
    found = phase("--do_train", "--optimizer_type=adam", "--use_xla", "--amp", "--init_checkpoint=m.ckpt")
    assert_equal(found, {"optimiser": "adamw-bert", "use_debiasing": False, "lr_schedule": "habana-tf"})
    assert_equal(found, {"compile": True, "precision": "fp16", "start_from_ckpt": "m.ckpt"})


def test_evaluation_alone_trains_nothing_and_prefers_the_runs_own_checkpoint(tmp_path):
    words = ("--do_eval", "--eval_files_dir=c,d", "--max_eval_steps=5", "--eval_batch_size=4")
    found = phase(*words, "--init_checkpoint=m.ckpt")
    assert_equal(found, {"do_train": False, "eval_data": "c,d", "eval_examples": 20})
    assert found["start_from_ckpt"] == "m.ckpt"
    (tmp_path / "run" / "checkpoints" / "step-1").mkdir(parents=True)
    assert phase(*words, "--init_checkpoint=m.ckpt")["start_from_ckpt"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "At least one of `do_train` or `do_eval` must be True."),
        (["--do_eval"], "--eval_files_dir must have a value other than None"),
        (["--do_train", "--use_fp16", "--manual_fp16"], "are both activated! Error"),
        (["--do_train", "--optimizer_type=sgd"], "invalid choice: 'sgd'"),
    ],
)
def test_what_the_program_refuses_is_refused(words, message):
    with pytest.raises(UsageError) as caught:
        translate(PROGRAM.read([*REQUIRED, *words]))
    assert message in str(caught.value)


def test_flags_that_absl_does_not_know_are_ignored_with_a_warning():
    assert any("--nosuch" in line for line in PROGRAM.read([*REQUIRED, "--do_train", "--nosuch=1"]).warnings)
