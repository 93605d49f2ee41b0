"""Configuration of the commands that fine-tune or evaluate a task."""

from collections.abc import Mapping, Sequence
from typing import Any

from bertdata.errors import SettingsError
from bertdata.io import storage
from bertdata.io.assets import VOCABULARIES
from trainer.config.flags import make_layered
from trainer.config.settings import Config, list_section_keys
from trainer.config.task_names import expand_task_flags
from trainer.config.value_sources import LayeredConfig
from trainer.plugins import FINE_TUNED

FINETUNE = "python -m trainer finetune"


_ACTION_KEYS = (
    *("task_train_file", "task_predict_file", "do_eval", "do_predict"),
    *("new_head", "ignore_mismatched_sizes"),
)
"""Keys of fine-tuning about what a run does (train, evaluate, predict). An evaluation of the run does not
take them from it.
"""


_DEFAULT_OPTIMISER = {
    "optimiser": "adamw-bert",
    "weight_decay": 0.01,
    "clipping": "per_update",
    "lr_schedule": "mlperf",
    "warmup": 0.1,
}
"""Google's AdamW. Fine-tuning uses it if the user sets no optimiser."""


def make_task_config(
    arguments: Sequence[str], prog: str = FINETUNE, known: Mapping[str, Any] | None = None
) -> Config:
    """Return the configuration of a command that fine-tunes or evaluates a task.

    arguments: the words of the command line after the command. They override ``known``.
    prog: the program and its command, for messages.
    known: keys that are known already, for example from the run that is evaluated.
    """
    return make_layered_task(arguments, prog, known).config


def make_layered_task(
    arguments: Sequence[str], prog: str = FINETUNE, known: Mapping[str, Any] | None = None
) -> LayeredConfig:
    """Return the configuration of a command that fine-tunes or evaluates a task, with the source of each
    value.
    """
    below = dict(known or {})
    words = expand_task_flags(arguments)
    return make_layered(words, prog, lambda keys: choose_task_defaults({**below, **keys}) | below)[-1]


def require_task(config: Config) -> None:
    """Raise SettingsError if the configuration names no task to fine-tune on."""
    if not config.is_finetuning:
        raise SettingsError("task is missing: give --task squad, or a classification by its name")


def choose_task_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that fine-tuning gives to keys that the user has not set.

    given: the keys that are set.
    """
    found: dict[str, Any] = {"base_learning_rate": 5e-5}
    if "optimiser" not in given:
        found |= _DEFAULT_OPTIMISER
    if "steps" not in given:
        found["num_train_epochs"] = 3.0
    return found


def select_fine_tuned_keys(given: Config, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys with which the run that is evaluated was fine-tuned. {} for a run that did not
    fine-tune.

    Keys that say what the run did (train, evaluate, predict) are left out. The evaluation file is left out if
    the command names a directory with the task's files. The vocabulary is left out if its file no longer
    exists.

    given: the command's configuration.
    found: all keys of the run.
    """
    if found.get("task") not in FINE_TUNED:
        return {}
    left_out = set(_ACTION_KEYS)
    if given.finetuning.task_dir is not None:
        left_out.add("task_eval_file")
    if not (storage.exists(str(found.get("vocab"))) or found.get("vocab") in VOCABULARIES):
        left_out.add("vocab")  # the run keeps a copy of the vocabulary, which is read instead
    names = ("max_seq_length", "vocab", *list_section_keys("finetuning"))
    return {name: found[name] for name in names if name in found and name not in left_out}
