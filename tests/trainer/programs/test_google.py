"""Google's run_squad.py and run_classifier.py: their published commands, defaults and refusals."""

import json
from shlex import split

import pytest

from tests.support.fine_tuning import squad_file
from tests.support.published_commands import assert_equal, understood
from tests.support.training_runs import refuse

SQUAD, CLASSIFIER = "google/run_squad.py", "google/run_classifier.py"
MODEL = "--vocab_file=base/vocab.txt --bert_config_file=base/bert_config.json --output_dir=results "
START = "--init_checkpoint=base/bert.ckpt "
FILES = "--train_file=squad/train-v1.1.json --predict_file=squad/dev-v1.1.json "
ADAMW = {
    "optimiser": "adamw-bert",
    "beta1": 0.9,
    "beta2": 0.999,
    "optimiser_epsilon": 1e-6,
    "weight_decay": 0.01,
    "decay_skips": None,  # the optimiser's own: LayerNorm, layer_norm, bias
    "use_debiasing": False,
    "clipping": "per_update",
    "max_grad_norm": 1.0,
    "lr_schedule": "mlperf",
    "power": 1.0,
    "gelu": "tanh",
}
SQUAD_KEYS = {
    "task": "squad",
    "task_train_file": "squad/train-v1.1.json",
    "task_predict_file": "squad/dev-v1.1.json",
    "task_eval_file": None,
    "vocab": "base/vocab.txt",
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


COMMANDS = {
    "squad": (
        SQUAD,
        f"{MODEL}{START}{FILES}--do_train=True --do_predict=True --train_batch_size=24 --learning_rate=3e-5 "
        "--num_train_epochs=2.0 --max_seq_length=384 --doc_stride=128",
        {
            **SQUAD_KEYS,
            **ADAMW,
            "start_from_ckpt": "base/bert.ckpt",
            "do_train": True,
            "do_eval": False,
            "do_predict": True,
            "batch_size": 24,
            "update_examples": 24,
            "base_learning_rate": 3e-5,
            "num_train_epochs": 2.0,
            "warmup": 0.1,
            "max_seq_length": 384,
            "lower_case": True,
        },
    ),
    "squad 2.0 on a TPU": (
        SQUAD,
        f"{MODEL}{START}{FILES}--do_train=True --do_predict=True --train_batch_size=24 --use_tpu=True "
        "--tpu_name=name --version_2_with_negative=True --null_score_diff_threshold=-1.5",
        {
            **SQUAD_KEYS,
            "device": "xla",
            "world_size": 8,
            "batch_size": 3,
            "eval_batch_size": 1,
            "update_examples": 24,
            "clipping": "per_micro_batch",
            "version_2_with_negative": True,
            "null_score_diff_threshold": -1.5,
        },
    ),
    "squad, defaults": (
        SQUAD,
        f"{MODEL}{FILES}--do_train",
        {
            **ADAMW,
            "start_from_ckpt": None,
            "do_predict": False,
            "batch_size": 32,
            "eval_batch_size": 8,
            "base_learning_rate": 5e-5,
            "num_train_epochs": 3.0,
            "checkpoint_every": 1000,
            "max_seq_length": 384,
            "doc_stride": 128,
            "max_query_length": 64,
            "n_best_size": 20,
            "max_answer_length": 30,
        },
    ),
    "mrpc": (
        CLASSIFIER,
        f"{MODEL}{START}--task_name=MRPC --do_train=true --do_eval=true --data_dir=glue/MRPC "
        "--max_seq_length=128 --train_batch_size=32 --learning_rate=2e-5 --num_train_epochs=3.0",
        {
            **ADAMW,
            "task": "mrpc",
            "task_dir": "glue/MRPC",
            "start_from_ckpt": "base/bert.ckpt",
            "vocab": "base/vocab.txt",
            "update_examples": 32,
            "max_seq_length": 128,
            "base_learning_rate": 2e-5,
            "num_train_epochs": 3.0,
            "warmup": 0.1,
            "do_train": True,
            "do_eval": True,
            "do_predict": False,
            "eval_every": 0,
        },
    ),
    "mrpc, prediction": (
        CLASSIFIER,
        f"{MODEL}{START}--task_name=MRPC --do_predict=true --data_dir=glue/MRPC --max_seq_length=128",
        {"task": "mrpc", "do_train": False, "do_eval": False, "do_predict": True, "task_dir": "glue/MRPC"},
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_published_command_has_the_programs_meaning(name):
    program, line, wanted = COMMANDS[name]
    (found,) = understood(program, split(line))["phases"]
    assert_equal(found, wanted)


def test_an_output_directory_with_checkpoints_goes_before_the_start(tmp_path):
    (tmp_path / "results" / "checkpoints" / "step-00000002").mkdir(parents=True)
    line = f"{MODEL}{START}--task_name=cola --data_dir=CoLA "
    (trained,) = understood(CLASSIFIER, split(f"{line}--do_train"))["phases"]
    assert_equal(trained, {"resume": True, "start_from_ckpt": "base/bert.ckpt"})
    (evaluated,) = understood(CLASSIFIER, split(f"{line}--do_eval"))["phases"]
    assert_equal(evaluated, {"resume": False, "start_from_ckpt": None, "do_train": False})


def test_flags_that_the_program_does_not_know_are_ignored_with_a_warning(trainer):
    line = split(f"{MODEL}{FILES}--do_train --do_lowercase=False --print-config")
    outcome = trainer("like", SQUAD, *line)
    assert outcome.status == 0
    assert "no such flag; it is ignored, as by the script; did you mean --do_lower_case?" in outcome.err


@pytest.mark.parametrize(
    ("program", "line", "said"),
    [
        (SQUAD, MODEL, "At least one of `do_train` or `do_predict` must be True."),
        (SQUAD, f"{MODEL}--do_train", "If `do_train` is True, then `train_file` must be specified."),
        (SQUAD, f"{MODEL}--do_predict", "If `do_predict` is True, then `predict_file` must be specified."),
        (
            SQUAD,
            f"{MODEL}{FILES}--do_train --max_seq_length=64",
            "must be greater than max_query_length (64) + 3",
        ),
        (SQUAD, "--do_train", "Flag --vocab_file must have a value other than None."),
        (CLASSIFIER, f"{MODEL}--task_name=mrpc --data_dir=x", "At least one of"),
        (CLASSIFIER, f"{MODEL}--task_name=sst2 --data_dir=x --do_train", "Task not found: sst2"),
        (CLASSIFIER, f"{MODEL}--task_name=XNLI --data_dir=x --do_train", "this trainer does not"),
        (SQUAD, f"{MODEL}{FILES}--do_train --use_tpu --train_batch_size=12", "must be divisible by"),
    ],
)
def test_what_the_program_refuses_is_refused_in_its_words(trainer, program, line, said):
    refuse(trainer("like", program, *split(line), "--print-config"), 2, said)


@pytest.mark.usefixtures("one_thread")
def test_a_command_trains_predicts_and_is_continued_unasked(trainer, pretrained, tmp_path):
    data = squad_file(tmp_path / "train.json", 12)
    words = [
        *(f"--vocab_file={pretrained}/vocab.txt", f"--bert_config_file={pretrained}/config.json"),
        *(
            f"--init_checkpoint={pretrained}",
            f"--output_dir={tmp_path / 'run'}",
            "--do_train",
            "--do_predict",
        ),
        *(f"--train_file={data}", f"--predict_file={data}", "--max_seq_length=40", "--max_query_length=16"),
        *("--train_batch_size=6", "--num_train_epochs=1", "--", "--device=cpu", "--no-logs"),
    ]
    outcome = trainer("like", SQUAD, *words)
    assert outcome.status == 0, outcome.err
    assert len(list((tmp_path / "run" / "checkpoints").glob("step-*"))) == 1
    assert len(json.loads((tmp_path / "run" / "predict" / "predictions.json").read_text())) == 12
    again = trainer("like", SQUAD, *words)
    assert (again.status, "has checkpoints" in again.err) == (0, True), again.err
