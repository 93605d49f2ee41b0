"""Search for a run whose name is nearly that of the output directory, which may be mistyped after
``--resume``.
"""

import os
import re

from bertdata.io import storage
from trainer.run.path_check import find_run_files

# least letters of a word in which one slip counts as a typing error: run-a and run-b are two names
_LEAST_LETTERS = 3


def find_near_run(output_dir: str) -> str | None:
    """Return the path of a run next to ``output_dir`` whose name differs by one typing error, or None.

    Names with different numbers are different runs on purpose, such as run-1 and run-2, or lr1e-4 and lr5e-4.
    """
    folder = os.path.abspath(output_dir.removeprefix("file://"))
    parent, name = os.path.split(folder)
    if not os.path.isdir(parent):
        return None
    near = [one for one in sorted(os.listdir(parent)) if one != name and is_typo_of(one, name)]
    where = storage.get_parent(output_dir.rstrip("/"))
    paths = [one if where == "." else storage.join(where, one) for one in near]
    return next((path for path in paths if find_run_files(path)), None)


def is_typo_of(one: str, other: str) -> bool:
    """Return True if one typing error turns one name into the other and both contain the same numbers.

    Case, hyphens and dots are ignored.
    """
    if re.findall(r"\d+", one) != re.findall(r"\d+", other):
        return False
    words, others = (re.findall(r"[^\W\d_]+", name.casefold()) for name in (one, other))
    joined, joined_other = "".join(words), "".join(others)
    if joined == joined_other:
        return True
    differing = {*words} ^ {*others}
    is_long = all(len(word) >= _LEAST_LETTERS for word in differing)
    return is_long and has_one_typing_error(joined, joined_other)


def has_one_typing_error(one: str, other: str) -> bool:
    """Return True if two words differ by one missing letter, one wrong letter, or two letters in the wrong
    order.
    """
    # Remove the common beginning and the common end: from "run-lerge" and "run-large" remain "e" and "a".
    start = len(os.path.commonprefix([one, other]))  # noqa: RUF071 - of letters, not of paths
    one, other = one[start:], other[start:]
    end = len(os.path.commonprefix([one[::-1], other[::-1]]))  # noqa: RUF071
    one, other = one[: len(one) - end], other[: len(other) - end]
    return len(one) + len(other) == 1 or len(one) == len(other) == 1 or (len(one) == 2 and one == other[::-1])
