"""Translate the command lines of Hugging Face's run_glue.py, for GLUE's tasks or tables of the user."""

import io
from contextlib import suppress
from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import BertDataError, UsageError
from bertdata.io import storage
from bertdata.io.file_kind import HEAD_BYTES
from bertdata.io.json_text import parse_json_text
from bertdata.sources.delimited import RowReader, find_delimiting
from trainer.programs.huggingface.training_arguments import check_files, make_training_keys
from trainer.programs.machine import is_local_file
from trainer.programs.translated_command import TranslatedCommand
from trainer.tasks.classification.reading import are_scores
from trainer.tasks.classification.table import read_rows
from trainer.tasks.data_file import read_file

_TASKS = {"sst2": "sst-2", "stsb": "sts-b"} | {
    name: name for name in ("cola", "mnli", "mrpc", "qnli", "qqp", "rte", "wnli")
}


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for fine-tuning, evaluation and predictions, as far as
    it asks for them.
    """
    name = flags["task_name"] and flags["task_name"].lower()
    keys = make_training_keys(flags)
    if name is not None:
        if name not in _TASKS:
            raise UsageError(f"Unknown task, you should pick one in {','.join(sorted(_TASKS))}")
        flags.warn(f"the task {name} is not downloaded: append -- --data-dir DIR, with its .tsv files in DIR")
        keys["task"] = _TASKS[name]
        if name == "mnli":  # the program gives these ids to the labels
            keys["labels"] = ["entailment", "neutral", "contradiction"]
    else:
        keys |= _make_table_keys(flags)
    if flags["gradient_accumulation_steps"] > 1:
        keys |= _make_accumulation_keys(flags)
    return TranslatedCommand(what=keys["task"], phases=[keys])


def _make_accumulation_keys(flags: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys for several micro-batches per update.

    With --as_published, the losses of the micro-batches are summed, as in version 5 of transformers.
    Without this flag, this trainer averages the losses, and a warning says so.
    """
    if flags["as_published"]:
        return {"loss_over": "sum"}
    flags.warn(
        "transformers 5 adds up the gradients of micro-batches, here they are averaged: see --as_published"
    )
    return {}


def _make_table_keys(flags: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys for a task on the user's tables, with the columns that run_glue.py would
    choose.
    """
    if flags["dataset_name"] is not None:
        raise UsageError(
            f"dataset_name {flags['dataset_name']}: not downloaded; give its files by --train_file"
        )
    if flags["train_file"] is None or flags["validation_file"] is None:
        raise UsageError("Need either a GLUE task, a training/validation file or a dataset name.")
    check_files(flags)
    names = [name for name in _read_columns(flags["train_file"]) if name != "label"]
    pair = ["sentence1", "sentence2"]
    if set(pair) <= set(names) or not names:
        names = pair
    first, second = names[0], names[1] if len(names) > 1 else None
    keys = {
        "task": "classification",
        "text_column": first,
        "second_text_column": second,
        "label_column": "label",
    }
    return keys | {"regression": True} if _has_float_labels(flags["train_file"]) else keys


def _has_float_labels(path: str) -> bool:
    """Return True if run_glue.py would read the labels of a table as numbers with fractions, and learn a
    score.

    Returns False for a table that is missing or unreadable, because fine-tuning reports that later.
    """
    if not is_local_file(path):
        return False
    with suppress(BertDataError):
        labels = {row.get("label", "") for _, row in read_rows(read_file(path))}
        return are_scores(labels)
    return False


def _read_columns(path: str) -> list[str]:
    """Return the column names of a table on this machine, or [] if the table is missing."""
    if not is_local_file(path):
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
