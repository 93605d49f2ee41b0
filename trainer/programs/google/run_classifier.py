"""Translate the command lines of Google's run_classifier.py (CoLA, MNLI and MRPC) to this trainer's keys."""

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError
from trainer.programs.google.fine_tuning import make_fine_tuning_keys
from trainer.programs.requirements import require_flags
from trainer.programs.translated_command import TranslatedCommand


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for fine-tuning, evaluation and predictions, as far as
    it asks for them.
    """
    require_flags(flags, "data_dir", "task_name", "vocab_file", "bert_config_file", "output_dir")
    if not (flags["do_train"] or flags["do_eval"] or flags["do_predict"]):
        raise UsageError("At least one of `do_train`, `do_eval` or `do_predict' must be True.")
    task = flags["task_name"].lower()
    if task == "xnli":
        raise UsageError(f"task_name {flags['task_name']}: the program knows it, this trainer does not")
    if task not in ("cola", "mnli", "mrpc"):
        raise UsageError(f"Task not found: {task}")
    keys = make_fine_tuning_keys(flags, "eval_batch_size") | {"task": task}
    return TranslatedCommand(what=task, phases=[keys])
