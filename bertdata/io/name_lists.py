"""Splitting of path lists such as ``a,b`` and ``a+b``, in which a path may itself contain ``,`` or ``+``."""

import re
from collections.abc import Callable

from bertdata.errors import MissingInputError
from bertdata.io import storage

_MAGIC = re.compile(r"[*?[]")
_MOST_SEPARATORS = 8
"""Most separators that the name of a path may contain.

With a higher limit more names would have to be tried, and each may cost a request to a remote file system.
"""


def path_exists(path: str) -> bool:
    """Return True if the path exists. False also for text that is not a valid URL, such as ``A+gs://b/B``."""
    try:
        return storage.exists(path)
    except MissingInputError:
        return False


def split_names(names: str, marks: str, is_there: Callable[[str], bool] = path_exists) -> list[str]:
    """Split a list of paths at the separators, except inside the name of an existing path.

    Examples, with ``+`` as the separator:

    - ``a+b`` is a single path if a file ``a+b`` exists.
    - ``a+b+c`` is the paths ``a+b`` and ``c`` if a file ``a+b`` exists and no file ``a``.
    - ``a+b/*.tfrecord`` is a single pattern if a directory ``a+b`` exists.

    marks: the separator characters.
    is_there: function that tells whether a path exists, for callers that also look outside the file system.
    """
    # "a+b+c" -> ["a", "+", "b", "+", "c"]: names and separators alternate
    words = re.split(f"([{re.escape(marks)}])", names)
    if len(words) == 1 or _is_single_path(names, marks, is_there):
        return [names]
    found = []
    start = 0
    # "+" may separate paths or be part of a file's name. So try a, then a+b, then a+b+c, and take the first
    # that exists. If none exists, take a alone. The error for a missing file comes later.
    while start < len(words):
        stop = start + 1
        if not (_MAGIC.search(words[start]) or is_there(words[start])):
            tries = range(start + 3, min(len(words), start + 1 + 2 * _MOST_SEPARATORS) + 1, 2)
            stop = next(
                (end for end in tries if _is_single_path("".join(words[start:end]), marks, is_there)), stop
            )
        found.append("".join(words[start:stop]))
        start = stop + 1
    return found


def _is_single_path(path: str, marks: str, is_there: Callable[[str], bool]) -> bool:
    """Return True if the path exists, or if it is a pattern inside an existing directory.

    Separators may occur in the directory's name, but not in the pattern after it.
    """
    if is_there(path):
        return True
    magic = _MAGIC.search(path)
    if magic is None:
        return False
    folder = path[: magic.start()].rpartition("/")[0]
    pattern = path[len(folder) :]
    return bool(folder) and not any(mark in pattern for mark in marks) and path_exists(folder)
