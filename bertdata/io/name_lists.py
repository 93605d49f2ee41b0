"""Lists of paths in one word: ``a,b`` and ``a+b``, and paths that have such a mark in their names."""

import re
from collections.abc import Callable

from bertdata.errors import MissingInputError
from bertdata.io import storage

_MAGIC = re.compile(r"[*?[]")
_MOST_MARKS = 8
"""In a name: more are not tried, because each try may ask a remote file system."""


def path_exists(path: str) -> bool:
    """Return True for a path that exists, False also for one that begins as no URL does: ``A+gs://b/B``."""
    try:
        return storage.exists(path)
    except MissingInputError:
        return False


def split_names(names: str, marks: str, is_there: Callable[[str], bool] = path_exists) -> list[str]:
    """Split a list of paths at the marks, but not within the name of a path that exists.

    ``a+b`` is one path where it exists; in ``a+b+c``, ``a+b`` is one where ``a`` does not exist and ``a+b``
    does. So is a pattern in a directory of such a name: ``a+b/*.tfrecord``. is_there: whether a path exists,
    where that takes more than to ask for it.
    """
    words = re.split(f"([{re.escape(marks)}])", names)  # path, mark, path, mark, path
    if len(words) == 1 or _is_one(names, marks, is_there):
        return [names]
    found = []
    start = 0
    while start < len(words):
        stop = start + 1
        if not (_MAGIC.search(words[start]) or is_there(words[start])):
            tries = range(start + 3, min(len(words), start + 1 + 2 * _MOST_MARKS) + 1, 2)
            stop = next((end for end in tries if _is_one("".join(words[start:end]), marks, is_there)), stop)
        found.append("".join(words[start:stop]))
        start = stop + 1
    return found


def _is_one(path: str, marks: str, is_there: Callable[[str], bool]) -> bool:
    """Return True for a path that exists, or for a pattern whose marks are all in a directory that exists."""
    if is_there(path):
        return True
    magic = _MAGIC.search(path)
    if magic is None:
        return False
    folder = path[: magic.start()].rpartition("/")[0]
    pattern = path[len(folder) :]
    return bool(folder) and not any(mark in pattern for mark in marks) and path_exists(folder)
