"""Select the data files of a directory that ``save_to_disk`` of Hugging Face's ``datasets`` wrote.

A directory with a saved dataset contains::

    DIR/state.json                   lists the data files; others are caches, or left from earlier saves
    DIR/dataset_info.json
    DIR/data-00000-of-00001.arrow
    DIR/cache-69976c054f6c498b.arrow left by map and shuffle

A directory with several splits (train, test) contains a directory such as the above for each split, and::

    DIR/dataset_dict.json            names the splits DIR/train and DIR/test
"""

from collections.abc import Iterable, Sequence
from typing import Any

from bertdata.errors import DatasetError
from bertdata.io import storage
from bertdata.io.manifest_file import parse_json

STATE = "state.json"
INFO = "dataset_info.json"
SPLITS = "dataset_dict.json"
NOT_LISTED = f"caches or earlier data, {STATE} does not list them"

_DATA_FILES = "_data_files"
_INDEX_KEYS = ("_indices_data_files", "_indices_files")
"""Keys with which older versions of ``datasets`` name the files that hold the order of .shuffle() and
.select().
"""


def list_data_files(state: bytes, where: str) -> list[str]:
    """Return the data files that a ``state.json`` lists, in order.

    Raises DatasetError if it lists no file, or if the dataset was saved with an index, which says which rows
    of the files belong to the dataset and in which order. Without this index the files would give other
    records.
    """
    found = parse_json(state, where)
    if any(found.get(name) for name in _INDEX_KEYS):
        raise DatasetError(
            f"{where}: the dataset was saved with an index of .shuffle(), .select() or .filter(); save it "
            "again after .flatten_indices()"
        )
    listed: Any = found.get(_DATA_FILES)
    entries = listed if isinstance(listed, list) else []
    names = [entry.get("filename") for entry in entries if isinstance(entry, dict)]
    if not names or not all(isinstance(name, str) for name in names):
        raise DatasetError(f"{where}: lists no data files, expected {_DATA_FILES} as datasets writes them")
    return [str(name) for name in names]


def refuse_splits(directory: str, names: Sequence[str]) -> None:
    """Raise DatasetError if a directory holds several splits of a dataset, because the user must choose a
    split.
    """
    for mark in (name for name in names if storage.get_base_name(name) == SPLITS):
        folder = _get_folder(mark)
        states = [name for name in names if storage.get_base_name(name) == STATE]
        splits = sorted(
            _get_folder(name) for name in states if storage.get_parent(_get_folder(name)) == (folder or ".")
        )
        if len(splits) > 1:
            told = ", ".join(storage.join(directory, name) for name in splits)
            raise DatasetError(
                f"{storage.join(directory, folder) if folder else directory}: holds several splits of "
                f"datasets; name one of them: {told}"
            )


def select_data_files(directory: str, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Select the files to read in a directory, which may contain datasets saved by ``save_to_disk``.

    Returns two lists: the files to read, and the Arrow files that are left out because no ``state.json``
    lists them. Raises DatasetError if there are several splits, if a ``state.json`` lists no files, or if a
    listed file is missing.

    names: paths of all files, relative to the directory.
    """
    refuse_splits(directory, names)
    there = set(names)
    dropped: set[str] = set()
    for state in (name for name in names if storage.get_base_name(name) == STATE):
        folder = _get_folder(state)
        # Other programs write a state.json too. A directory is only a saved dataset if it also has a
        # dataset_info.json.
        if _join_name(folder, INFO) not in there:
            continue
        path = storage.join(directory, state)
        listed = {_join_name(folder, name) for name in list_data_files(storage.read_bytes(path), path)}
        for name in sorted(listed - there):
            raise DatasetError(
                f"{storage.join(directory, name)}: is missing, {STATE} lists it; save it again"
            )
        arrow = {name for name in names if _get_folder(name) == folder and name.endswith(".arrow")}
        dropped |= arrow - listed
    return [name for name in names if name not in dropped], sorted(dropped)


def refuse_unlisted(files: Iterable[str]) -> None:
    """Raise DatasetError for an Arrow file that its directory's ``state.json`` does not list.

    files: the files that the user named.
    """
    listed: dict[str, set[str] | None] = {}
    for path in files:
        if not path.endswith(".arrow"):
            continue
        folder = storage.get_parent(path)
        if folder not in listed:
            listed[folder] = _read_listed_files(folder)
        names = listed[folder]
        if names is not None and storage.get_base_name(path) not in names:
            raise DatasetError(
                f"{path}: is a cache or earlier data: {storage.join(folder, STATE)} does not list it; give "
                f"the directory: {folder}"
            )


def _read_listed_files(folder: str) -> set[str] | None:
    """Return the file names that the ``state.json`` of a saved dataset lists, or None for any other
    directory.
    """
    path = storage.join(folder, STATE)
    if not (storage.exists(path) and storage.exists(storage.join(folder, INFO))):
        return None
    return set(list_data_files(storage.read_bytes(path), path))


def _get_folder(name: str) -> str:
    """Return the directory in a relative path, "" if there is none."""
    return name.rpartition("/")[0]


def _join_name(folder: str, name: str) -> str:
    """Return the path of a file in a folder. An empty folder name leaves the file name as it is."""
    return f"{folder}/{name}" if folder else name
