"""Directories that are made for a run, and removed again where the run is refused and they stay empty."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress


def missing_directories(path: str) -> list[str]:
    """Return a local path and its parents as far as they do not exist, the innermost first."""
    found = []
    path = os.path.abspath(path)
    while not os.path.lexists(path):
        found.append(path)
        path = os.path.dirname(path)
    return found


def remove_empty(directories: Iterable[str]) -> None:
    """Remove directories, the innermost first, as far as they are empty."""
    with suppress(OSError):
        for directory in directories:
            os.rmdir(directory)


@contextmanager
def made_directory(path: str) -> Iterator[None]:
    """Make a local directory with its parents. At the end remove what was made and is still empty."""
    missing = missing_directories(path)
    os.makedirs(path, exist_ok=True)
    try:
        yield
    finally:
        remove_empty(missing)
