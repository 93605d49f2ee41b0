"""The configuration of fine-tuning from its command line; other programs' flags keep their meaning."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.config.finetuning import SQUAD
from trainer.config.flags import Habits, make_config
from trainer.config.settings import Config

FINETUNE = "python -m trainer finetune"

_NAMES = {
    "data-dir": "task-dir",
    "train-file": "task-train-file",
    "eval-file": "task-eval-file",
    "dev-file": "task-eval-file",
    "predict-file": "task-predict-file",
    "validation-file": "task-eval-file",
    "test-file": "task-predict-file",
}
"""Flags that mean something else in pre-training, or nothing."""

_OPTIMISER = {
    "optimiser": "adamw-bert",
    "weight_decay": 0.01,
    "clipping": "per_update",
    "lr_schedule": "mlperf",
    "warmup": 0.1,
}
"""Google's AdamW, for a configuration that names no optimiser."""

_USUAL = {"base_learning_rate": 5e-5}
_USUAL_EPOCHS = 3.0

_WITHOUT_TRAINING = ("bert_model", "bert_config_file", "config_file", "model_type")
"""Flags of programs that train, evaluate and predict only what they are asked for."""

_STOPPING = ("bert_model", "bert_config_file", "config_file")
"""Flags of programs whose max_steps ends a run before its schedule does."""

_TASKS = ("task", "task_name", "test_set", "dataset_name")
_OF_SQUAD = ("doc_stride", "max_query_length", "version_2_with_negative", "eval_script")
"""Flags that say the task without naming it, as programs for one task have them."""

SIZES = ("base", "large")
"""Names of pre-trained models by size, as Habana's launcher has them."""


def make_task_config(
    arguments: Sequence[str], prog: str = FINETUNE, known: Mapping[str, Any] | None = None
) -> Config:
    """The configuration of a command that fine-tunes or evaluates a task.

    known: keys that are known already, as a run's; what is given goes before them.
    """
    below = dict(known or {})
    habits = Habits(adapt=_adapted, defaults=lambda keys: task_defaults({**below, **keys}) | below)
    return make_config(task_flags(arguments), prog, habits)


def task_flags(arguments: Sequence[str]) -> list[str]:
    """The arguments under the names of the configuration's keys."""
    found = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if argument.startswith("--"):
            plain = name[2:].replace("_", "-")
            name = f"--{_NAMES.get(plain, plain)}"
        found.append(f"{name}{equals}{value}")
    return found


def task_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    """The usual values of fine-tuning for keys that are not given."""
    found: dict[str, Any] = dict(_USUAL)
    if "optimiser" not in given:
        found |= _OPTIMISER
    if "steps" not in given:
        found["num_train_epochs"] = _USUAL_EPOCHS
        warmup = given.get("warmup")
        if isinstance(warmup, int) and warmup:  # the number of updates follows from the epochs
            found["steps"] = 1000 + warmup
    return found


def _adapted(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags with those that mean something else in fine-tuning by what they mean."""
    found = dict(flags)
    _adapt_steps(found)
    if "do_train" not in found and _asks_for_each(found):
        found["do_train"] = False
    names = [str(found[name]).lower() for name in _TASKS if name in found]
    if not names and any(name in found for name in _OF_SQUAD):
        names = [SQUAD]
        found["task"] = SQUAD
    if names and names[0].startswith(SQUAD):
        _adapt_evaluation(found)
    return found


def _adapt_evaluation(flags: dict[str, Any]) -> None:
    """The file to predict is that to evaluate too, for programs that have one flag for both."""
    path = flags.get("task_predict_file")
    if path and "task_eval_file" not in flags and (flags.get("do_eval") or flags.get("eval_script")):
        flags["task_eval_file"] = path
        flags["do_predict"] = False  # evaluation writes the same predictions


def _adapt_steps(flags: dict[str, Any]) -> None:
    """A number of updates replaces the epochs of a file.

    max_steps: -1 says nothing; else it ends the run (NVIDIA), or replaces the epochs (Hugging Face).
    """
    value = flags.pop("max_steps", None)
    if isinstance(value, list):
        value = value[-1]
    if value is not None and value >= 0 and any(name in flags for name in _STOPPING):
        flags["steps_this_run"] = int(value)
    elif value is not None and value >= 0:
        flags["steps"] = int(value)
        flags["num_train_epochs"] = None
    if any(name in flags for name in ("steps", "num_train_steps")):
        flags.setdefault("num_train_epochs", None)


def _asks_for_each(flags: Mapping[str, Any]) -> bool:
    """True for the command of a program that trains only with do_train, where something else is asked for."""
    if not (flags.get("do_eval") or flags.get("do_predict")):
        return False
    model = flags.get("model_name_or_path")
    return any(name in flags for name in _WITHOUT_TRAINING) or (model is not None and model not in SIZES)
