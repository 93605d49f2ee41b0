"""Real paths: a file has a single real path, however its name is spelt and whatever symbolic links lead to
it.

On the left, several paths of the same file. On the right, its real path::

    ./x.jsonl, r/../x.jsonl, /home/a/x.jsonl, file:///home/a/x.jsonl, a link to it    /home/a/x.jsonl
    gs://bucket/x.jsonl, gcs://bucket/x.jsonl                                         gs://bucket/x.jsonl

Hard links count as different files, because each can be removed without the other.
"""

import os
from collections.abc import Iterable, Sequence

from bertdata.io import storage

_LOCAL = ("file://", "local://")
_SAME_SCHEMES = {"gcs": "gs", "s3a": "s3"}


def resolve_path(path: str) -> str:
    """Return the real path of a file or directory, which need not exist."""
    local = find_local_path(path)
    return _normalize_url(path) if local is None else os.path.realpath(local)


def resolve_paths(paths: Iterable[str]) -> list[str]:
    """Return the real path of each path. A folder that several paths share is resolved only once."""
    folders: dict[str, str] = {}
    found = []
    for path in paths:
        local = find_local_path(path)
        if local is None:
            found.append(_normalize_url(path))
            continue
        folder, name = os.path.split(local)
        # a/b/.. has no file name after its last slash, so it is resolved as a whole
        if name in ("", os.curdir, os.pardir):
            found.append(os.path.realpath(local))
            continue
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        place = os.path.join(folders[folder], name)
        found.append(os.path.realpath(place) if os.path.islink(place) else place)
    return found


def find_repeated(paths: Sequence[str]) -> tuple[str, str] | None:
    """Return the first two paths that lead to the same file. Returns None if all are different."""
    first: dict[str, str] = {}
    for path, real in zip(paths, resolve_paths(paths), strict=True):
        if real in first:
            return first[real], path
        first[real] = path
    return None


def find_local_path(path: str) -> str | None:
    """Return the path on the local file system. Returns None for a URL of another file system."""
    for start in _LOCAL:
        if path.startswith(start):
            return path[len(start) :]
    return None if storage.is_remote(path) else path


def find_file_system(path: str) -> str:
    """Return the name of the file system: the scheme of a URL, such as ``gs``, or "" for a local path."""
    return "" if find_local_path(path) is not None else _normalize_url(path).partition("://")[0]


def _normalize_url(path: str) -> str:
    """Return the URL with the usual name of its scheme, and without slashes before and after its path.

    ``.`` and ``..`` stay, because in a bucket they are ordinary characters of a name.
    """
    scheme, _, rest = path.partition("://")
    return f"{_SAME_SCHEMES.get(scheme, scheme)}://{rest.strip('/')}"
