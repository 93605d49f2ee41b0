"""Translate the command lines of Google's run_classifier.py (CoLA, MNLI and MRPC) to this trainer's keys."""

from bertdata.cli.common.programs.command_line import Given
from bertdata.errors import UsageError
from trainer.programs.google.fine_tuning import make_fine_tuning_keys
from trainer.programs.meaning import Meaning
from trainer.programs.requirements import require_flags


def resolve(given: Given) -> Meaning:
    """Return the fine-tuning, evaluation and predictions that the command line describes."""
    require_flags(given, "data_dir", "task_name", "vocab_file", "bert_config_file", "output_dir")
    if not (given["do_train"] or given["do_eval"] or given["do_predict"]):
        raise UsageError("At least one of `do_train`, `do_eval` or `do_predict' must be True.")
    task = given["task_name"].lower()
    if task == "xnli":
        raise UsageError(f"task_name {given['task_name']}: the program knows it, this trainer does not")
    if task not in ("cola", "mnli", "mrpc"):
        raise UsageError(f"Task not found: {task}")
    keys = make_fine_tuning_keys(given, "eval_batch_size") | {"task": task}
    return Meaning(what=task, phases=[keys])
