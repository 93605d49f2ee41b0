"""The command ``python -m trainer finetune``, and the configuration of its command line."""

from collections.abc import Mapping, Sequence
from typing import Any

from bertdata.cli.common.door_words import take_print_config
from trainer.collectives.launchers import launched
from trainer.config.flags import Habits, make_config
from trainer.config.settings import Config
from trainer.config.task_names import task_flags
from trainer.run.commands import announce_torch, print_phases
from trainer.run.path_check import check_paths


def run(arguments: list[str]) -> None:
    """Train a task from a checkpoint, evaluate and predict."""
    words, printing = take_print_config(arguments)
    config = make_task_config(words)
    if printing:
        return print_phases("trainer finetune", [config])
    check_paths([config])
    if launched(config, "finetune", *arguments):
        return
    announce_torch()
    from trainer.extensions.finetuning.finetune import finetune

    finetune(config)


FINETUNE = "python -m trainer finetune"

_OPTIMISER = {
    "optimiser": "adamw-bert",
    "weight_decay": 0.01,
    "clipping": "per_update",
    "lr_schedule": "mlperf",
    "warmup": 0.1,
}
"""Google's AdamW, for a configuration that names no optimiser."""


def make_task_config(
    arguments: Sequence[str], prog: str = FINETUNE, known: Mapping[str, Any] | None = None
) -> Config:
    """The configuration of a command that fine-tunes or evaluates a task.

    known: keys that are known already, as a run's; what is given goes before them.
    """
    below = dict(known or {})
    habits = Habits(adapt=_adapted, defaults=lambda keys: task_defaults({**below, **keys}) | below)
    return make_config(task_flags(arguments), prog, habits)


def task_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    """The usual values of fine-tuning for keys that are not given."""
    found: dict[str, Any] = {"base_learning_rate": 5e-5}
    if "optimiser" not in given:
        found |= _OPTIMISER
    if "steps" not in given:
        found["num_train_epochs"] = 3.0
    return found


def _adapted(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags, of which a number of updates replaces the epochs of a file."""
    return flags | {"num_train_epochs": flags.get("num_train_epochs")} if "steps" in flags else flags
