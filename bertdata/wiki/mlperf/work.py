"""Limits of the work on one page: those of the original, and a budget where the original has none."""

from collections.abc import Iterator
from contextlib import contextmanager

MAX_TEXT = 256 << 20
"""The largest text, in characters, that a page may grow to, those that wait for inner calls included."""

MAX_DEPTH = 30
"""Templates within templates: from this depth on, expansion gives an empty text."""

MAX_PARAMETER_LEVEL = 10
"""Parameters within parameters: a deeper one is empty."""

MAX_FRAMES = 977
"""Frames of nested calls, of the 1000 that Python allows by default.

The expansion of a text that holds ``{{``, a call, a transformation, a substitution and the arguments of a
template take one each, a parser function two: 488 calls nested in names are possible in an article, or
244 branches of ``#if``.
"""

FUNCTION_FRAMES = 2

_STEP = 1000
"""Characters that a step on an empty text counts as: about as long as Python takes for it."""


class LimitError(Exception):
    """A page beyond the budget: the text finishes the sentence "page X: ..."."""


class TooDeepError(Exception):
    """Calls nested deeper than MAX_FRAMES: the page fails, or the parser function around them is empty."""


class Work:
    """The budget of one page, in characters read or written, and its count of nested frames."""

    def __init__(self, max_work: int) -> None:
        self._max_work = max_work
        self._left = max_work
        self._frames = 0
        self._waiting = 0

    def spend(self, size: int) -> None:
        """Pay for a text that is read or written; LimitError when nothing is left, or it is too large."""
        check_size(size)
        self._left -= size + _STEP
        if self._left < 0:
            raise LimitError(f"took more than {self._max_work} bytes of work")

    @contextmanager
    def frames(self, number: int = 1, waiting: int = 0) -> Iterator[None]:
        """Go so many frames deeper while a text of that size waits; TooDeepError beyond MAX_FRAMES."""
        if self._frames + number > MAX_FRAMES:
            raise TooDeepError("calls are nested too deep")
        check_size(self._waiting + waiting)
        self._frames += number
        self._waiting += waiting
        try:
            yield
        finally:
            self._frames -= number
            self._waiting -= waiting


def check_size(size: int) -> None:
    """LimitError for a text that would grow so large."""
    if size > MAX_TEXT:
        raise LimitError(f"grew beyond {MAX_TEXT >> 20} MiB of text")
