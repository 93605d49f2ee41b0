"""Hugging Face's run_glue.py (GLUE's tasks and tables of your own): the meaning of its command lines."""

import io
from typing import Any

from bertdata.cli.common.programs.command_line import Given
from bertdata.errors import UsageError
from bertdata.io import storage
from bertdata.io.file_kind import HEAD_BYTES
from bertdata.io.json_text import parse_json_text
from bertdata.sources.delimited import RowReader, find_delimiting
from trainer.programs.huggingface.training_arguments import check_files, training_keys
from trainer.programs.machine import is_here
from trainer.programs.meaning import Meaning

_TASKS = {"sst2": "sst-2", "stsb": "sts-b"} | {
    name: name for name in ("cola", "mnli", "mrpc", "qnli", "qqp", "rte", "wnli")
}


def resolve(given: Given) -> Meaning:
    """Return the fine-tuning, the evaluation and the predictions that the command line asks for."""
    name = given["task_name"] and given["task_name"].lower()
    keys = training_keys(given)
    if name is not None:
        if name not in _TASKS:
            raise UsageError(f"Unknown task, you should pick one in {','.join(sorted(_TASKS))}")
        given.warn(f"the task {name} is not downloaded: append -- --data-dir DIR, with its .tsv files in DIR")
        keys["task"] = _TASKS[name]
        if name == "mnli":  # the program numbers the labels in this order
            keys["labels"] = ["entailment", "neutral", "contradiction"]
    else:
        keys |= _own_table(given)
    if given["gradient_accumulation_steps"] > 1:
        keys |= _accumulation(given)
    return Meaning(what=keys["task"], phases=[keys])


def _accumulation(given: Given) -> dict[str, Any]:
    """Return the keys of several micro-batches an update, and say where the program's version 5 differs."""
    if given["as_published"]:
        return {"loss_over": "sum"}
    given.warn(
        "transformers 5 adds up the gradients of micro-batches, here they are averaged: see --as_published"
    )
    return {}


def _own_table(given: Given) -> dict[str, Any]:
    """Return the task of your own files, with the columns that the program would take."""
    if given["dataset_name"] is not None:
        raise UsageError(
            f"dataset_name {given['dataset_name']}: not downloaded; give its files by --train_file"
        )
    if given["train_file"] is None or given["validation_file"] is None:
        raise UsageError("Need either a GLUE task, a training/validation file or a dataset name.")
    check_files(given)
    names = [name for name in _columns(given["train_file"]) if name != "label"]
    pair = ["sentence1", "sentence2"]
    if set(pair) <= set(names) or not names:
        names = pair
    first, second = names[0], names[1] if len(names) > 1 else None
    return {"task": "classification", "first_column": first, "second_column": second, "label_column": "label"}


def _columns(path: str) -> list[str]:
    """Return the names of the columns of a table on this machine, or none where it is missing."""
    if not is_here(path):
        return []
    data = storage.read_bytes(path)
    if path.endswith(".json"):
        try:
            row = parse_json_text(data.partition(b"\n")[0], any_number=True)
        except ValueError:
            return []
        return list(row) if isinstance(row, dict) else []
    rows = RowReader(io.BytesIO(data), find_delimiting(data[:HEAD_BYTES], path, "csv"), len(data) + 1)
    return next((row.fields for row in rows), [])
