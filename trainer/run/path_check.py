"""Checks of a run's paths before torch is imported and workers are started: they take milliseconds.

The run checks again what matters to it, since others may change the paths meanwhile.
"""

import os
from collections.abc import Sequence

from bertdata.dataset.mixture.weights import split_paths
from bertdata.errors import DatasetError, StorageError
from bertdata.io import storage
from bertdata.io.commit import UNFINISHED
from bertdata.io.directory_lock import LOCK_NAME, lock_directory
from trainer.config.settings import Config
from trainer.workers.launchers import find_launcher

_RUN = ("checkpoints", "training.csv")
"""Names in the output directory that tell of a run."""


def check_paths(phases: Sequence[Config]) -> None:
    """An error for data that are missing, and for an output directory that cannot be written or is in use.

    Nothing is looked at in the workers of a launcher, each of which would print the error, and in remote
    storage, which takes time.
    """
    if find_launcher() != "single":
        return
    if phases[0].run.do_train and not phases[0].is_finetuning:
        require_paths(phases)
    for config in phases:
        train_data = None if config.data.generated_data else config.data.train_data
        for paths in filter(None, (train_data, config.data.eval_data)):
            for path in split_paths(paths):
                if not storage.is_remote(path) and not storage.is_directory(path):
                    storage.expand([path])
    first, output_dir = phases[0], phases[0].run.output_dir
    if output_dir is not None and not first.run.compile_only and not storage.is_remote(output_dir):
        _check_output(output_dir, first)


def require_paths(phases: Sequence[Config]) -> None:
    """SettingsError where data to pre-train on, or the output directory, are not given."""
    for config in phases:
        if not config.data.generated_data:
            config.require("train_data")
        if not config.run.compile_only:
            config.require("output_dir")


def find_used(output_dir: str) -> list[str]:
    """The names in the directory that tell of a run."""
    return [name for name in _RUN if storage.exists(storage.join(output_dir, name))]


def check_free(output_dir: str) -> None:
    """DatasetError for a new run in a directory that has a run."""
    for used in find_used(output_dir):
        remedy = "give --resume to continue there, or another --output-dir"
        raise DatasetError(f"{output_dir}: is in use: holds {used}; {remedy}")


def _check_output(output_dir: str, config: Config) -> None:
    continues = config.start.continues_here
    if config.run.do_train and not continues:
        check_free(output_dir)
    folder = storage.join(output_dir, UNFINISHED)
    if storage.exists(storage.join(folder, LOCK_NAME)):
        with lock_directory(folder):
            pass
    local = os.path.abspath(output_dir.removeprefix("file://"))
    while not os.path.lexists(local):
        local = os.path.dirname(local)
    if not os.path.isdir(local):
        raise StorageError(f"{local}: is no directory, so nothing can be written below it; choose another")
    if not os.access(local, os.W_OK | os.X_OK):
        raise StorageError(f"{local}: may not be written to; choose another --output-dir")
