"""The configuration of a command that fine-tunes or evaluates a task."""

from collections.abc import Mapping, Sequence
from typing import Any

from bertdata.io import storage
from bertdata.io.assets import VOCABULARIES
from trainer.config.flags import make_layered
from trainer.config.settings import Config, section_keys
from trainer.config.task_names import task_flags
from trainer.config.value_sources import Layered
from trainer.plugins import FINE_TUNED

FINETUNE = "python -m trainer finetune"


_ASKED_FOR = (
    *("task_train_file", "task_predict_file", "do_eval", "do_predict"),
    *("new_head", "ignore_mismatched_sizes"),
)
"""Keys of the section that say what a run did, not what its model is."""


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
    return make_layered_task(arguments, prog, known).config


def make_layered_task(
    arguments: Sequence[str], prog: str = FINETUNE, known: Mapping[str, Any] | None = None
) -> Layered:
    """The configuration as ``make_task_config`` makes it, with the sources of its values."""
    below = dict(known or {})
    words = task_flags(arguments)
    return make_layered(words, prog, lambda keys: task_defaults({**below, **keys}) | below)[-1]


def task_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    """The usual values of fine-tuning for keys that are not given."""
    found: dict[str, Any] = {"base_learning_rate": 5e-5}
    if "optimiser" not in given:
        found |= _OPTIMISER
    if "steps" not in given:
        found["num_train_epochs"] = 3.0
    return found


def fine_tuned_keys(given: Config, found: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that the run to evaluate was fine-tuned with, or none for another checkpoint.

    The file to evaluate on is left out where a directory is given, the vocabulary where it is gone.
    """
    if found.get("task") not in FINE_TUNED:
        return {}
    left_out = set(_ASKED_FOR)
    if given.finetuning.task_dir is not None:
        left_out.add("task_eval_file")
    if not (storage.exists(str(found.get("vocab"))) or found.get("vocab") in VOCABULARIES):
        left_out.add("vocab")  # a copy lies beside the features
    names = ("max_seq_length", "vocab", *section_keys("finetuning"))
    return {name: found[name] for name in names if name in found and name not in left_out}
