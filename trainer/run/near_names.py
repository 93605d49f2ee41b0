"""Runs whose names are nearly that of a directory without a run: ``--resume`` may have been mistyped."""

import os
import re

from bertdata.io import storage
from trainer.run.path_check import find_used

_LEAST_LETTERS = 3  # of a word: run-a and run-b are two names, not one mistyped


def find_near_run(output_dir: str) -> str | None:
    """The path of a run beside the directory whose name differs from its by a slip of the keyboard, or None.

    Names that differ in a number are other runs: run-1 and run-2, lr1e-4 and lr5e-4.
    """
    folder = os.path.abspath(output_dir.removeprefix("file://"))
    parent, name = os.path.split(folder)
    if not os.path.isdir(parent):
        return None
    near = [one for one in sorted(os.listdir(parent)) if one != name and is_near(one, name)]
    where = storage.parent(output_dir.rstrip("/"))
    paths = [one if where == "." else storage.join(where, one) for one in near]
    return next((path for path in paths if find_used(path)), None)


def is_near(one: str, other: str) -> bool:
    """True for names that one slip of the keyboard makes the same, with the same numbers in them.

    Capitals, hyphens and points count for nothing.
    """
    if re.findall(r"\d+", one) != re.findall(r"\d+", other):
        return False
    words, others = (re.findall(r"[^\W\d_]+", name.casefold()) for name in (one, other))
    joined, joined_other = "".join(words), "".join(others)
    if joined == joined_other:
        return True
    differing = {*words} ^ {*others}
    is_long = all(len(word) >= _LEAST_LETTERS for word in differing)
    return is_long and is_one_slip(joined, joined_other)


def is_one_slip(one: str, other: str) -> bool:
    """True for words that a letter too many, or another one, or two exchanged neighbours tell apart."""
    start = len(os.path.commonprefix([one, other]))  # noqa: RUF071 - of letters, not of paths
    one, other = one[start:], other[start:]
    end = len(os.path.commonprefix([one[::-1], other[::-1]]))  # noqa: RUF071
    one, other = one[: len(one) - end], other[: len(other) - end]
    return len(one) + len(other) == 1 or len(one) == len(other) == 1 or (len(one) == 2 and one == other[::-1])
