"""Habana's run_pretraining.py for TensorFlow: one phase, by absl's flags."""

import json

import pytest

from tests.support.published_commands import assert_equal, refusal, told, understood

PROGRAM = "habana-tf/run_pretraining.py"


@pytest.fixture
def given(tmp_path, monkeypatch):
    """The flags that every command has, with paths in a new directory."""
    for name in ("TF_BF16_CONVERSION", "TF_ENABLE_BF16_CONVERSION"):
        monkeypatch.delenv(name, raising=False)
    config = tmp_path / "bert_config.json"
    config.write_text(json.dumps({"hidden_size": 128, "num_hidden_layers": 2}), encoding="utf-8")
    return [f"--bert_config_file={config}", "--input_files_dir=a,b", f"--output_dir={tmp_path}/out"]


@pytest.fixture
def eight(monkeypatch):
    """Eight workers of mpirun."""
    for name, value in (("RANK", "0"), ("SIZE", "8"), ("LOCAL_RANK", "0")):
        monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", value)


def phase(words):
    (found,) = understood(PROGRAM, words)["phases"]
    return found


def part(found, *names):
    return [found[name] for name in names]


def test_a_command_without_more_has_the_program_s_defaults(given):
    wanted = {
        "device": "hpu",
        "precision": "fp32",
        "do_train": True,
        "train_data": "a,b",
        "eval_data": None,
        "max_seq_length": 512,
        "max_predictions_per_seq": 80,
        "batch_size": 32,
        "accumulation": 1,
        "steps": 100000,
        "warmup": 10000,
        "base_learning_rate": 5e-5,
        "checkpoint_every": 1000,
        "keep_checkpoints": 5,
        "log_every": 1,
        "json_summary_form": "tensorflow",
        "json_summary": "/results/bert_dllog.json",
        "optimiser": "lamb-habana-tf",
        "lr_schedule": "habana-tf",
        "decay_skips": ["LayerNorm", "layer_norm", "bias"],
        "optimiser_epsilon": 1e-6,
        "gelu": "tanh",
        "resume": False,
        "start_from_ckpt": None,
        "phase2": False,
        "unverified": True,
    }
    assert_equal(phase([*given, "--do_train"]), wanted)


def test_the_readme_s_phase_1_of_eight_workers(given, eight):
    words = (
        "--do_train=True --do_eval=False --eval_files_dir=test --train_batch_size=32 --eval_batch_size=8 "
        "--max_seq_length=128 --max_predictions_per_seq=20 --num_train_steps=100 "
        "--num_accumulation_steps=256 --num_warmup_steps=2000 --save_checkpoints_steps=100 "
        "--learning_rate=7.500000e-04 --horovod --noamp "
        "--nouse_xla --allreduce_post_accumulation=True --dllog_path=dllog.json"
    )
    wanted = {
        "world_size": 8,
        "dist": False,
        "batch_size": 32,
        "accumulation": 256,
        "update_examples": 65536,
        "base_learning_rate": 7.5e-4,
        "steps": 100,
        "warmup": 2000,
        "clipping": "per_micro_batch_divided",
        "allreduce_post_accumulation": True,
        "json_summary": "dllog.json",
        "eval_data": None,
    }
    assert_equal(phase([*given, *words.split()]), wanted)


def test_without_accumulation_gradients_are_clipped_after_their_sum(given, eight):
    assert phase([*given, "--do_train", "--horovod"])["clipping"] == "per_update"


def test_phase_2_starts_from_weights_alone(given):
    found = phase([*given, "--do_train", "--init_checkpoint=phase_1/model.ckpt-100"])
    names = ("start_from_ckpt", "start_moments", "phase2", "resume")
    assert part(found, *names) == ["phase_1/model.ckpt-100", False, False, False]


def test_a_checkpoint_in_the_output_directory_is_continued_unasked(given, tmp_path):
    (tmp_path / "out/checkpoints/step-00000100").mkdir(parents=True)
    assert phase([*given, "--do_train", "--init_checkpoint=x"])["resume"] is True


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("lamb", ["lamb-habana-tf", "habana-tf", None]),
        ("adam", ["adamw-bert", "habana-tf", None]),
        ("LAMB", ["adamw-bert", "mlperf", 0.5]),
    ],
)
def test_any_word_but_lamb_is_adam(given, name, keys):
    words = [*given, "--do_train", f"--optimizer_type={name}"]
    assert part(phase(words), "optimiser", "lr_schedule", "power") == keys
    assert ("any other word for Adam" in told(PROGRAM, words)) == (name == "LAMB")


@pytest.mark.parametrize(
    ("variable", "flag", "precision"),
    [("0", [], "fp32"), ("bert.json", [], "bf16"), ("0", ["--bf16_config_path=bert.json"], "bf16")],
)
def test_bf16_is_asked_for_by_the_environment_or_its_list(given, monkeypatch, variable, flag, precision):
    monkeypatch.setenv("TF_BF16_CONVERSION", variable)
    assert phase([*given, "--do_train", *flag])["precision"] == precision


def test_an_evaluation_is_of_so_many_batches(given):
    words = [*given, "--do_eval", "--eval_files_dir=test", "--max_eval_steps=50", "--eval_batch_size=4"]
    found = phase(words)
    names = ("do_train", "eval_data", "eval_batch_size", "eval_examples", "eval_every")
    assert part(found, *names) == [False, "test", 4, 200, 0]


def test_a_deterministic_run_has_no_dropout(given):
    found = phase([*given, "--do_train", "--deterministic_run"])
    assert part(found, "seed", "hidden_dropout_prob", "attention_probs_dropout_prob") == [1, 0.0, 0.0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "At least one of `do_train` or `do_eval` must be True."),
        (["--do_eval"], "Flag --eval_files_dir must have a value other than None."),
        (["--do_train", "--manual_fp16"], "AMP and Manual Mixed Precision Training are both activated!"),
        (["--do_train", "--num_train_steps=1.5"], "is not an integer"),
    ],
)
def test_wrong_command_lines_are_refused_in_the_program_s_words(given, words, message):
    assert message in refusal(PROGRAM, [*given, *words])


def test_workers_without_horovod_are_refused(given, eight):
    assert "without --horovod each would train on its own" in refusal(PROGRAM, [*given, "--do_train"])


def test_unknown_flags_are_ignored_as_by_the_script(given):
    assert "did you mean --num_train_steps?" in told(PROGRAM, [*given, "--do_train", "--num_train_step=3"])
