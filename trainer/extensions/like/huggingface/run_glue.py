"""Hugging Face's run_glue.py: GLUE's tasks, and tables of one's own."""

import csv
import io
import json
from typing import Any

from bertdata.cli.common.program_flags import Flag, Given
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.extensions.like.huggingface.arguments import DATA, MODEL, TRAINING, hf_flag
from trainer.extensions.like.huggingface.training import check_files, read_booleans, summary_of, training_keys
from trainer.extensions.like.program import Meaning, Program
from trainer.extensions.like.shapes import is_here

_TABLE: list[Flag] = [
    *MODEL,
    *DATA,
    *TRAINING,
    hf_flag("task_name", meaning="a task of GLUE: cola, mnli, mrpc, qnli, qqp, rte, sst2, stsb or wnli"),
    hf_flag("max_seq_length", int, 128, "ids of a feature", key="max_seq_length"),
]

_TASKS = {"sst2": "sst-2", "stsb": "sts-b"} | {
    name: name for name in ("cola", "mnli", "mrpc", "qnli", "qqp", "rte", "wnli")
}
_LABELS = {"mnli": ["entailment", "neutral", "contradiction"]}
"""Labels in the order of their numbers, where the program's differs from this trainer's."""


def resolve(given: Given) -> Meaning:
    """The fine-tuning, the evaluation and the predictions that the command line asks for."""
    given = read_booleans(given, _TABLE)
    warnings: list[str] = []
    name = given["task_name"] and given["task_name"].lower()
    keys = training_keys(given, _TABLE, warnings)
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
    """The names of the columns of a table of this machine; none where it is not there."""
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


PROGRAM = Program(
    name="huggingface/run_glue.py",
    title="Hugging Face run_glue.py",
    source="huggingface/transformers 4.5 to 4.57, examples/pytorch/text-classification/run_glue.py",
    commands={"": _TABLE},
    resolve=resolve,
    published=(
        "--model_name_or_path bert-base-cased --task_name mrpc --do_train --do_eval --max_seq_length 128 "
        "--per_device_train_batch_size 32 --learning_rate 2e-5 --num_train_epochs 3 --output_dir /tmp/mrpc/",
    ),
)
