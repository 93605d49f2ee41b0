"""Hugging Face's run_qa.py and run_glue.py: their published commands, defaults and refusals."""

import json
from pathlib import Path
from shlex import split

import pytest

from tests.support.fine_tuning import evaluations, table
from tests.support.published_commands import assert_equal, understood
from tests.support.training_runs import refuse
from trainer.programs.huggingface import training_arguments

QA, GLUE = "huggingface/run_qa.py", "huggingface/run_glue.py"
BASE = "--model_name_or_path bert-base-cased --output_dir out "
MRPC = f"{BASE}--task_name mrpc --do_train "
DEFAULTS = {
    "optimiser": "adamw",
    "beta1": 0.9,
    "beta2": 0.999,
    "optimiser_epsilon": 1e-8,
    "weight_decay": 0.0,
    "decay_skips": ["bias", "LayerNorm"],
    "clipping": "per_update",
    "max_grad_norm": 1.0,
    "lr_schedule": "polynomial_decay",
    "warmup": 0,
    "base_learning_rate": 5e-5,
    "num_train_epochs": 3.0,
    "batch_size": 8,
    "eval_batch_size": 8,
    "accumulation": 1,
    "seed": 42,
    "checkpoint_every": 500,
    "do_eval": False,
    "do_predict": False,
    "eval_every": 0,
    "precision": "fp32",
    "lower_case": None,
    "gelu": "exact",
    "resume": False,
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def phase(program: str, line: str) -> dict[str, object]:
    (found,) = understood(program, split(line))["phases"]
    return dict(found)


COMMANDS = {
    "defaults": (GLUE, MRPC, {"task": "mrpc", "max_seq_length": 128, "do_train": True, **DEFAULTS}),
    "defaults of run_qa.py": (
        QA,
        f"{BASE}--dataset_name squad --do_train",
        {"task": "squad", "max_seq_length": 384, "doc_overlap": 128, "n_best_size": 20, **DEFAULTS}
        | {"first_answer": True, "max_query_length": 0},
    ),
    "run_glue.py": (
        GLUE,
        f"{BASE}--task_name stsb --do_train --do_eval --max_seq_length 128 --per_device_train_batch_size 32 "
        "--learning_rate 2e-5 --num_train_epochs 3",
        {
            "task": "sts-b",
            "start_from_ckpt": "bert-base-cased",
            "batch_size": 32,
            "base_learning_rate": 2e-5,
            "do_eval": True,
        },
    ),
    "run_glue.py, own files": (
        GLUE,
        f"{BASE}--train_file train.csv --validation_file dev.csv --test_file test.csv --do_train "
        "--do_predict --max_seq_length 64 --warmup_ratio 0.06 --lr_scheduler_type linear --optim adamw_torch "
        "--adam_epsilon 1e-7 --weight_decay 0.1 --max_steps 700 --eval_strategy steps --eval_steps 100 "
        "--save_total_limit 2 --save_steps -1 --bf16",
        {
            "task": "classification",
            "task_train_file": "train.csv",
            "task_eval_file": "dev.csv",
            "task_predict_file": "test.csv",
            "text_column": "sentence1",
            "second_text_column": "sentence2",
            "label_column": "label",
            "max_seq_length": 64,
            "warmup": 0.06,
            "optimiser_epsilon": 1e-7,
            "weight_decay": 0.1,
            "steps": 700,
            "num_train_epochs": None,
            "do_eval": True,
            "eval_every": 100,
            "keep_checkpoints": 2,
            "checkpoint_every": 0,
            "precision": "bf16",
        },
    ),
    "run_qa.py": (
        QA,
        "--model_name_or_path bert-base-uncased --dataset_name squad_v2 --do_train --do_eval "
        "--per_device_train_batch_size 12 --learning_rate 3e-5 --num_train_epochs 2 --max_seq_length 384 "
        "--doc_stride 128 --output_dir squad --version_2_with_negative",
        {"task": "squad", "version_2_with_negative": True, "batch_size": 12, "num_train_epochs": 2.0},
    ),
    "run_qa.py pads to its longest sequence, and chooses among padding too": (
        QA,
        f"{BASE}--dataset_name squad --do_train",
        {"rows": True, "answers_over_padding": True, "padding_learns": False},
    ),
    "micro-batches added up, as transformers 5 does": (
        GLUE,
        f"{MRPC}--gradient_accumulation_steps 4 --as_published",
        {"accumulation": 4, "loss_over": "sum"},
    ),
    "run_qa.py, own files": (
        QA,
        f"{BASE}--train_file a.json --validation_file b.json --test_file c.json --do_eval --do_predict",
        {
            "task_train_file": "a.json",
            "task_eval_file": "b.json",
            "task_predict_file": "c.json",
            "do_train": False,
        },
    ),
    "older names": (
        GLUE,
        f"{MRPC}--per_gpu_train_batch_size 16 --per_gpu_eval_batch_size 3 --evaluation_strategy epoch",
        {"batch_size": 16, "eval_batch_size": 3, "do_eval": True, "eval_every": None},
    ),
    "hyphens, and values of booleans": (
        GLUE,
        f"{BASE}--task-name mnli --do-train yes --do_eval False --fp16 1 --gradient-accumulation-steps 4 "
        "--no_pad_to_max_length",
        {
            "task": "mnli",
            "labels": ["entailment", "neutral", "contradiction"],
            "do_train": True,
            "do_eval": False,
            "precision": "fp16",
            "accumulation": 4,
        },
    ),
    "warm-up in updates": (GLUE, f"{MRPC}--warmup_steps 5000 --warmup_ratio 0.1", {"warmup": 5000}),
    "constant rate": (
        GLUE,
        f"{MRPC}--lr_scheduler_type constant --max_grad_norm 0",
        {"lr_schedule": "custom", "lr_schedule_by_step": {"0": 5e-5}, "clipping": "none"},
    ),
}


def test_without_padding_to_the_longest_sequence_none_is_chosen_among():
    keys = phase(QA, f"{BASE}--dataset_name squad --do_train --pad_to_max_length false")
    assert not keys["rows"]
    assert not keys["answers_over_padding"]


def test_accumulation_tells_where_transformers_5_differs(trainer):
    line = f"{MRPC}--gradient_accumulation_steps 4"
    told = trainer("like", GLUE, *split(line), "--print-config").err
    assert "transformers 5 adds up the gradients of micro-batches" in told
    assert "--as_published" in told
    assert "transformers 5" not in trainer("like", GLUE, *split(MRPC), "--print-config").err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_published_command_has_the_programs_meaning(name):
    program, line, wanted = COMMANDS[name]
    assert_equal(phase(program, line), wanted)


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ("", {"device": "cuda", "world_size": 2, "dist": True}),
        ("--no_cuda", {"device": "cpu", "world_size": None}),
        ("--use_cpu", {"device": "cpu", "dist": False}),
    ],
)
def test_all_gpus_are_taken_where_there_are_some(monkeypatch, flags, wanted):
    monkeypatch.setattr(training_arguments, "count_gpus", lambda: 2)
    assert_equal(phase(GLUE, f"{MRPC}{flags}"), wanted)


def test_without_a_gpu_the_processor_trains(monkeypatch):
    monkeypatch.setattr(training_arguments, "count_gpus", lambda: 0)
    assert_equal(phase(GLUE, MRPC), {"device": "cpu", "world_size": None, "dist": False})


def test_a_table_has_the_columns_that_the_program_would_take(tmp_path):
    files = f"{BASE}--train_file train.csv --validation_file dev.csv --do_train"
    for heading, wanted in {
        "label,text": ("text", None),
        "question,label,answer,more": ("question", "answer"),
        "label,first,sentence1,sentence2": ("sentence1", "sentence2"),
    }.items():
        (tmp_path / "train.csv").write_text(f"{heading}\n0,a\n")
        found = phase(GLUE, files)
        assert (found["text_column"], found["second_text_column"]) == wanted


@pytest.mark.parametrize(("known", "wanted"), [(64, 64), (512, 128), (10**30, 128)])
def test_a_sequence_is_no_longer_than_the_models_own_length(known: int, wanted: int, tmp_path: Path) -> None:
    """The programs take the smaller of max_seq_length and the tokeniser's model_max_length."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "tokenizer_config.json").write_text(json.dumps({"model_max_length": known}))
    given = f"--model_name_or_path {tmp_path / 'model'} --output_dir out --task_name mrpc --do_train"
    assert phase(GLUE, given)["max_seq_length"] == wanted


def test_a_run_is_continued_unless_it_is_to_be_overwritten(tmp_path):
    (tmp_path / "out" / "checkpoints" / "step-00000002").mkdir(parents=True)
    assert phase(GLUE, MRPC)["resume"] is True
    assert phase(GLUE, f"{MRPC}--overwrite_output_dir")["resume"] is False


@pytest.mark.parametrize(
    ("program", "line", "said"),
    [
        (GLUE, "--output_dir out", "the following arguments are required"),
        (GLUE, f"{BASE}--task_name colla", "Unknown task, you should pick one in cola,"),
        (GLUE, BASE, "Need either a GLUE task, a training/validation file or a dataset name."),
        (QA, BASE, "Need either a dataset name or a training/validation file/test_file."),
        (QA, f"{BASE}--train_file a.txt", "`train_file` should be a csv or a json file."),
        (QA, f"{BASE}--dataset_name imdb", "this trainer has squad and squad_v2"),
        (GLUE, f"{MRPC}--fp16 --bf16", "At most one of fp16 and bf16 can be True, but not both"),
        (GLUE, f"{MRPC}--fp16 maybe", "Truthy value expected: got maybe"),
        (GLUE, f"{MRPC}--lr_scheduler_type cosine", "lr_scheduler_type cosine"),
        (GLUE, f"{MRPC}--optim lion_32bit", "optim lion_32bit"),
        (GLUE, f"{MRPC}--label_smoothing_factor 0.1", "label_smoothing_factor is 0.1"),
        (GLUE, f"{MRPC}--save_steps 0.1", "give their number"),
        (GLUE, f"{MRPC}--evaluate_during_traning", "unrecognized arguments"),
    ],
)
def test_what_cannot_be_meant_is_refused(trainer, program, line, said):
    refuse(trainer("like", program, *split(line), "--print-config"), 2, said)


@pytest.mark.usefixtures("one_thread")
def test_a_command_trains_on_own_files_and_evaluates_at_the_end(trainer, pretrained, tmp_path):
    for name, count in (("train", 24), ("dev", 8)):
        rows = table(tmp_path / f"{name}.tsv", count).read_text()
        (tmp_path / f"{name}.csv").write_text(rows.replace("\t", ","))
    words = [
        *("--model_name_or_path", pretrained, "--output_dir", "run", "--do_train", "--do_eval", "--use_cpu"),
        *("--train_file", "train.csv", "--validation_file", "dev.csv", "--max_seq_length", 40),
        *("--num_train_epochs", 2, "--logging_steps", 1),
    ]
    outcome = trainer("like", GLUE, *words)
    assert outcome.status == 0, outcome.err
    (row,) = evaluations(tmp_path / "run")
    assert row["step"] == 6


@pytest.mark.usefixtures("one_thread")
def test_run_qa_trains_on_the_first_of_several_answers(trainer, pretrained, tmp_path):
    context = "Anna went to the bridge . Later Peter saw the garden ."
    rows = [
        {
            "id": str(number),
            "context": context,
            "question": "Where was Anna ?",
            "answers": {"text": ["bridge", "the bridge"], "answer_start": [17, 13]},
        }
        for number in range(4)
    ]
    (tmp_path / "train.json").write_text(json.dumps({"data": rows}))
    words = [
        *("--model_name_or_path", pretrained, "--output_dir", "run", "--do_train", "--use_cpu"),
        *("--train_file", "train.json", "--max_seq_length", 40, "--doc_stride", 8, "--max_steps", 1),
    ]
    outcome = trainer("like", QA, *words)
    assert outcome.status == 0, outcome.err
    (features,) = (tmp_path / "run").glob("**/squad-*/manifest.json")
    settings = json.loads(features.read_text())["settings"]["objective"]
    assert (settings["first_answer"], settings["doc_overlap"], settings["max_query_length"]) == (True, 8, 0)
