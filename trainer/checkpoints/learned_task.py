"""The fine-tuning task that a checkpoint has learned, and the labels of its head."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertdata.errors import SettingsError
from trainer.checkpoints.any_checkpoint import OURS, Checkpoint
from trainer.checkpoints.formats.labels import LabelKeys
from trainer.checkpoints.reading import read_state
from trainer.config.settings import Config, list_section_keys
from trainer.errors import CheckpointError
from trainer.tasks.classification.head_labels import REGRESSION, SINGLE_LABEL
from trainer.tasks.classification.presets import TASKS

_ANSWERS = "qa_outputs."


def read_run_labels(config: Mapping[str, Any]) -> LabelKeys:
    """Return the labels of the classification head from the configuration that a run has stored."""
    task, labels = TASKS.get(str(config.get("task"))), config.get("labels")
    if task is None:
        return LabelKeys()
    if config.get("regression") or (task.regression and labels is None):
        return LabelKeys(None, REGRESSION)
    return LabelKeys(task.labels if labels is None else tuple(labels), SINGLE_LABEL)


def make_learned_task_config(checkpoint: Checkpoint) -> Config:
    """Return a configuration with the task that the checkpoint has learned. Other keys have their defaults.

    A run of this trainer stores its task's name. In another program's checkpoint, the type of the head shows
    the task. Without a fine-tuning head, the task is pre-training.
    """
    if checkpoint.kind == OURS:
        found = read_state(Path(checkpoint.path)).config
        names = ("max_seq_length", *list_section_keys("finetuning"))
        try:
            return Config.of(**{name: found[name] for name in names if name in found})
        except SettingsError as error:
            raise CheckpointError(f"{checkpoint.path}: its config: {error}") from None
    if (head := checkpoint.head_labels) is not None:
        if head.is_score:
            return Config.of(task="classification", regression=True)
        return Config.of(task="classification", labels=None if head.names is None else list(head.names))
    if any(name.startswith(_ANSWERS) for name in checkpoint.weights):
        return Config.of(task="squad")
    return Config.of()
