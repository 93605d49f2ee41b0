"""The command ``python -m trainer predict`` with a fine-tuned model: an answer, or a label."""

from argparse import Namespace

from bertdata.errors import UsageError
from bertdata.io.terminal import say, say_error
from trainer.extensions.finetuning.answer import THE_TEXT, answer_line, find_context
from trainer.extensions.finetuning.classification.presets import find_classification
from trainer.extensions.finetuning.label import label_line
from trainer.extensions.finetuning.task_flags import SQUAD
from trainer.run.predict_command import refuse, single_text
from trainer.run.trained_model import Trained


def predict_task(given: Namespace, opened: Trained, task: str) -> None:
    """Print the answer or the label; task: the name of the task."""
    given.task = SQUAD if task.lower() == SQUAD else find_classification(task).name
    if given.task == SQUAD:
        _print_answer(given, opened)
    else:
        _print_label(given, opened)


def _print_answer(given: Namespace, opened: Trained) -> None:
    """Print the answer; an empty line, and a message, where the text holds none."""
    refuse(given, ("num", "labels"))
    question = single_text(given)
    if given.context is None:
        raise UsageError(
            f"{given.model}: the task squad answers from a text: give it, or its file, by --context"
        )
    context = find_context(given.context)
    if context.name == THE_TEXT:
        say_error("trainer: --context names no file: it is taken as the text itself")
    line = answer_line(opened, question, context, as_json=given.json)
    say(line)
    if not line:
        say_error(f"trainer: {context.name}: holds no answer to the question")


def _print_label(given: Namespace, opened: Trained) -> None:
    refuse(given, ("num", "context"))
    labels = given.labels.split(",") if given.labels else None
    say(label_line(opened, given.task, given.text, labels=labels, as_json=given.json))
