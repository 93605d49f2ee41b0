"""Creation of directories that are removed again if the run is refused, as long as they are empty."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress


def list_missing_directories(path: str) -> list[str]:
    """Return those of a local path and its parents that do not exist, the innermost first."""
    found = []
    path = os.path.abspath(path)
    while not os.path.lexists(path):
        found.append(path)
        path = os.path.dirname(path)
    return found


def remove_empty_directories(directories: Iterable[str]) -> None:
    """Remove nested directories, innermost first, up to the first directory that is not empty."""
    with suppress(OSError):
        for directory in directories:
            os.rmdir(directory)


@contextmanager
def make_directory_for_block(path: str) -> Iterator[None]:
    """Create a local directory and its missing parents for the duration of a block.

    After the block, the directories that this call created are removed if they are empty.
    """
    missing = list_missing_directories(path)
    os.makedirs(path, exist_ok=True)
    try:
        yield
    finally:
        remove_empty_directories(missing)
