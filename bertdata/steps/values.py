"""Values as Python callers give them, made what the rooms below take."""

import os
from collections.abc import Iterable

from bertdata.errors import SettingsError
from bertdata.io.process_pool import available_cores

AnyPath = str | os.PathLike[str]
"""A path or a URL."""

AnyPaths = AnyPath | Iterable[AnyPath]
"""One path, or several."""


def path_of(path: AnyPath) -> str:
    """The path as text."""
    found = os.fspath(path)
    if not isinstance(found, str):
        raise SettingsError(f"path {found!r}: expected a str or a PathLike of str")
    return found


def paths_of(paths: AnyPaths) -> list[str]:
    """All paths as text, in the order given."""
    if isinstance(paths, str | os.PathLike):
        return [path_of(paths)]
    return [path_of(path) for path in paths]


def workers_of(workers: int | None) -> int:
    """The number of processes; None: one for each core."""
    if workers is None:
        return available_cores()
    if workers < 1:
        raise SettingsError(f"workers is {workers}, expected 1 or more")
    return workers
