"""Hugging Face's run_qa.py (SQuAD 1.1 and 2.0), and run_glue.py (GLUE's tasks and tables of one's own)."""

import csv
import io
import json
from typing import Any

from bertdata.cli.common.program_flags import Flag, Given
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.extensions.like.huggingface.arguments import DATA, MODEL, TRAINING, hf_flag, truth
from trainer.extensions.like.huggingface.training import check_files, read_booleans, summary_of, training_keys
from trainer.extensions.like.machine import is_here
from trainer.extensions.like.program import Meaning, Program

_QA_FLAGS: list[Flag] = [
    *MODEL,
    *DATA,
    *TRAINING,
    hf_flag("max_seq_length", int, 384, "ids of a feature", key="max_seq_length"),
    hf_flag("doc_stride", int, 128, "tokens that two spans have in common", key="doc_stride"),
    hf_flag("n_best_size", int, 20, "answers of a question in nbest_predictions.json", key="n_best_size"),
    hf_flag("max_answer_length", int, 30, "tokens of an answer at most", key="max_answer_length"),
    hf_flag("version_2_with_negative", truth, False, "SQuAD 2.0: questions without an answer"),
    hf_flag("null_score_diff_threshold", float, 0.0, "SQuAD 2.0: advantage of no answer over the best one",
            key="null_score_diff_threshold"),
]  # fmt: skip
_GLUE_FLAGS: list[Flag] = [
    *MODEL,
    *DATA,
    *TRAINING,
    hf_flag("task_name", meaning="a task of GLUE: cola, mnli, mrpc, qnli, qqp, rte, sst2, stsb or wnli"),
    hf_flag("max_seq_length", int, 128, "ids of a feature", key="max_seq_length"),
]

_DATASETS = ("squad", "squad_v2")
_TASKS = {"sst2": "sst-2", "stsb": "sts-b"} | {
    name: name for name in ("cola", "mnli", "mrpc", "qnli", "qqp", "rte", "wnli")
}
_LABELS = {"mnli": ["entailment", "neutral", "contradiction"]}
"""Labels in the order of their numbers, where the program's differs from this trainer's."""


def _qa(given: Given) -> Meaning:
    """The fine-tuning, the evaluation and the predictions that the command line asks for."""
    given = read_booleans(given, _QA_FLAGS)
    files = (given["train_file"], given["validation_file"], given["test_file"])
    name = given["dataset_name"]
    if name is None and not any(files):
        raise UsageError("Need either a dataset name or a training/validation file/test_file.")
    dataset = name and name.rpartition("/")[2]
    if name is not None and dataset not in _DATASETS:
        raise UsageError(f"dataset_name {name}: this trainer has {' and '.join(_DATASETS)}")
    check_files(given, needed=name is None)
    warnings = [
        "the program's doc_stride is what two spans have in common, here it is the way from one to the next"
    ]
    if name is not None:
        warnings.append(
            f"the dataset {name} is not downloaded: append -- --data-dir DIR, with its files in DIR"
        )
    keys = training_keys(given, _QA_FLAGS, warnings)
    keys |= {
        "task": "squad",
        "version_2_with_negative": given["version_2_with_negative"] or dataset == "squad_v2",
    }
    return Meaning(summary=summary_of("squad", given, keys), phases=[keys], warnings=warnings)


def _glue(given: Given) -> Meaning:
    """The fine-tuning, the evaluation and the predictions that the command line asks for."""
    given = read_booleans(given, _GLUE_FLAGS)
    warnings: list[str] = []
    name = given["task_name"] and given["task_name"].lower()
    keys = training_keys(given, _GLUE_FLAGS, warnings)
    if name is not None:
        if name not in _TASKS:
            raise UsageError(f"Unknown task, you should pick one in {','.join(sorted(_TASKS))}")
        warnings.append(
            f"the task {name} is not downloaded: append -- --data-dir DIR, with its .tsv files in DIR"
        )
        keys["task"] = _TASKS[name]
        if name in _LABELS:
            keys["labels"] = _LABELS[name]
    else:
        keys |= _own_table(given)
    return Meaning(summary=summary_of(keys["task"], given, keys), phases=[keys], warnings=warnings)


def _own_table(given: Given) -> dict[str, Any]:
    """The task of one's own files, with the columns that the program would take."""
    if given["dataset_name"] is not None:
        raise UsageError(
            f"dataset_name {given['dataset_name']}: not downloaded; give its files by --train_file"
        )
    if given["train_file"] is None or given["validation_file"] is None:
        raise UsageError("Need either a GLUE task, a training/validation file or a dataset name.")
    check_files(given, needed=True)
    names = [name for name in _columns(given["train_file"]) if name != "label"]
    pair = ["sentence1", "sentence2"]
    if set(pair) <= set(names) or not names:
        names = pair
    first, second = names[0], names[1] if len(names) > 1 else None
    return {"task": "classification", "first_column": first, "second_column": second, "label_column": "label"}


def _columns(path: str) -> list[str]:
    """The names of the columns of a table on this machine, or none where it is missing."""
    if not is_here(path):
        return []
    text = storage.read_bytes(path).decode(errors="replace")
    if path.endswith(".json"):
        try:
            row = json.loads(text.partition("\n")[0])
        except ValueError:
            return []
        return list(row) if isinstance(row, dict) else []
    return next(csv.reader(io.StringIO(text)), [])


QA = Program(
    name="huggingface/run_qa.py",
    title="Hugging Face run_qa.py",
    source="huggingface/transformers 4.5 to 4.57, examples/pytorch/question-answering/run_qa.py",
    commands={"": _QA_FLAGS},
    resolve=_qa,
    published=(
        "--model_name_or_path bert-base-uncased --dataset_name squad --do_train --do_eval "
        "--per_device_train_batch_size 12 --learning_rate 3e-5 --num_train_epochs 2 --max_seq_length 384 "
        "--doc_stride 128 --output_dir /tmp/debug_squad/",
    ),
)

GLUE = Program(
    name="huggingface/run_glue.py",
    title="Hugging Face run_glue.py",
    source="huggingface/transformers 4.5 to 4.57, examples/pytorch/text-classification/run_glue.py",
    commands={"": _GLUE_FLAGS},
    resolve=_glue,
    published=(
        "--model_name_or_path bert-base-cased --task_name mrpc --do_train --do_eval --max_seq_length 128 "
        "--per_device_train_batch_size 32 --learning_rate 2e-5 --num_train_epochs 3 --output_dir /tmp/mrpc/",
    ),
)
