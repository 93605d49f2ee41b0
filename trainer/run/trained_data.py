"""The data that a checkpoint was trained on, from whose labels the baselines of an evaluation follow."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import BertDataError
from bertdata.io import storage
from trainer.checkpoints.reading import read_state
from trainer.checkpoints.source import find_trainer_checkpoint
from trainer.config.settings import list_section_keys
from trainer.data.opening import prepare_for_training
from trainer.run.copying import copy_features
from trainer.tasks.fine_tuned import find_task_data
from trainer.tasks.task_files import FEATURES, make_features, name_features
from trainer.update.worker import Runtime

_SECTIONS = ("data", "loading", "masking")
"""Sections of the configuration that say how a run opens its training data."""


def open_trained_data(runtime: Runtime, path: str, tokens: int | None) -> OpenedDataset | None:
    """Open the data that a checkpoint was trained on, so that its evaluation has the run's own baselines.

    Return None for another program's checkpoint, and if the data no longer exist, have changed, or cannot be
    read by every worker.
    path: path of the checkpoint.
    tokens: number of tokens in the model's vocabulary, or None if it is not known.
    """
    digest, keys, candidates = runtime.on_rank_0(lambda: _find_trained_paths(path))
    for candidate in candidates:
        if (found := _open_candidate(runtime, candidate, keys, digest, tokens)) is not None:
            return found
    # The features of a run at a URL are not there, so they are made again from its training file.
    made = copy_features(runtime, runtime.on_rank_0(lambda: _remake_features(runtime, path)))
    return None if made is None else _open_candidate(runtime, made, keys, digest, tokens)


def _open_candidate(
    runtime: Runtime, candidate: str, keys: dict[str, Any], digest: str | None, tokens: int | None
) -> OpenedDataset | None:
    """Open a dataset as the run did. Return None if it has another digest, or some worker cannot read it."""
    found = None
    with suppress(BertDataError):
        config = runtime.config.changed(**keys)
        found = prepare_for_training(config, runtime.task.open(config, candidate, tokens))
    if all(runtime.collective.gather(found is not None and found.digest == digest)):
        return found
    return None


def _remake_features(runtime: Runtime, path: str) -> str | None:
    """Make the features of the training file of a fine-tuned run at a URL again. Return their directory.

    Return None for a task whose evaluation does not count training labels, and if the file no longer exists
    or would give other features. A URL that only the checkpoint names is not opened, since the checkpoint may
    come from others.
    path: path of the checkpoint.
    """
    config, own = runtime.config, find_trainer_checkpoint(path)
    if runtime.remote is None or own is None or not config.is_finetuning:
        return None
    state = read_state(own)
    file, trained = state.config.get("task_train_file"), state.config.get("train_data")
    if not (file and trained) or not find_task_data(config.task).counts_training_labels:
        return None
    kind = {"training": True, "labelled": True}
    with suppress(BertDataError):
        is_there = not storage.is_remote(file) and storage.exists(file)
        if is_there and name_features(config, file, **kind) == Path(trained).name:
            runtime.log(f"{file}: making its features again, for the baseline of the training set")
            return make_features(config, file, **kind, tell=runtime.log).directory
    return None


def _find_trained_paths(path: str) -> tuple[str | None, dict[str, Any], list[str]]:
    """Return how a checkpoint's training data are found again: digest, keys of the configuration, and paths.

    The list of paths is empty for another program's checkpoint.
    """
    own = find_trainer_checkpoint(path)
    if own is None:
        return None, {}, []
    state = read_state(own)
    trained = state.config.get("train_data")
    names = [name for section in _SECTIONS for name in list_section_keys(section)]
    # A name with a colon stands for code of the user, and no checkpoint may choose which code is imported.
    keys = {
        name: state.config[name]
        for name in names
        if name in state.config and ":" not in str(state.config[name])
    }
    if not trained:
        return state.data, keys, []
    # A fine-tuned run keeps the features of its training file, also after it was moved.
    moved = own.parent.parent / FEATURES / Path(trained).name
    return state.data, keys, [trained, str(moved)]
