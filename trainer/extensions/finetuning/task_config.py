"""The configuration of fine-tuning from its command line."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.config.flags import Habits, make_config
from trainer.config.settings import Config
from trainer.config.task_names import task_flags

FINETUNE = "python -m trainer finetune"

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

SIZES = ("base", "large")
"""Names of pre-trained models by size."""


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
    found: dict[str, Any] = dict(_USUAL)
    if "optimiser" not in given:
        found |= _OPTIMISER
    if "steps" not in given:
        found["num_train_epochs"] = _USUAL_EPOCHS
    return found


def _adapted(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags, of which a number of updates replaces the epochs of a file."""
    return flags | {"num_train_epochs": flags.get("num_train_epochs")} if "steps" in flags else flags
