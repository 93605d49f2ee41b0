"""The datasets that a run was trained and evaluated on, if they still exist."""

from collections.abc import Iterator
from contextlib import suppress

from bertdata.dataset.discover import FoundDataset, find_datasets
from bertdata.dataset.mixture.opening import open_weighted
from bertdata.dataset.mixture.weights import split_paths
from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import BertDataError
from bertdata.io import storage
from trainer.logs.recorded_run import RecordedRun

_FEATURES = "features"
"""Directory inside a fine-tuned run that has the features made for it."""


def split_setting_paths(run: RecordedRun, setting: str) -> list[str]:
    """Return the paths in the value of a setting such as "train_data".

    Features in the run's own directory are found there, even if the page is made from another directory. A
    text that cannot be split into paths is returned as the only path.
    """
    given = run.config.get(setting)
    if not isinstance(given, str):
        return []
    found = [given]
    with suppress(BertDataError):
        found = list(split_paths(given))
    return [_find_own_features(run, path) for path in found]


def _find_own_features(run: RecordedRun, path: str) -> str:
    """Return the path of features in the run's directory, if ``path`` names them relative to another
    directory. Otherwise return ``path``.
    """
    with suppress(BertDataError):
        own = storage.join(storage.join(run.path, _FEATURES), storage.get_base_name(path))
        if f"/{_FEATURES}/" in path and not storage.exists(path) and storage.exists(own):
            return own
    return path


def iterate_datasets(run: RecordedRun, setting: str) -> Iterator[FoundDataset]:
    """Yield the datasets that a setting names. Datasets that no longer exist are left out."""
    for path in split_setting_paths(run, setting):
        with suppress(BertDataError):
            yield from find_datasets(path)


def open_run_data(run: RecordedRun, setting: str) -> OpenedDataset | None:
    """Open the only dataset that a setting names.

    Return None if it no longer exists, or if the setting names several.
    """
    paths = split_setting_paths(run, setting)
    if len(paths) != 1:
        return None
    with suppress(BertDataError):
        return open_weighted(paths)
    return None
