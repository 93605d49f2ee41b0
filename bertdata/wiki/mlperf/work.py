"""Limits of the work on one page: those of the original, and a budget where the original has none."""

from collections.abc import Iterator
from contextlib import contextmanager

from bertdata.wiki.mlperf.compute import compute

MAX_TEXT = 256 << 20
"""The largest text, in bytes of UTF-8, that a page may grow to, those that wait for inner calls included."""

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

CALL_WORK = 1024
STEP_WORK = 64
TOO_DEEP_WORK = 4096
PYTHON_WORK = 1 << 14
PYTHON_BYTE_WORK = 128
"""Bytes of work beside those handled: of a call, of an expansion or a substitution, of nesting too deep, of
each argument of a function that both engines leave to Python, and of each of its bytes."""


class LimitError(Exception):
    """A page beyond the budget: the text finishes the sentence "page X: ..."."""


class TooDeepError(Exception):
    """Calls nested deeper than MAX_FRAMES: the page fails, or the parser function around them is empty."""


class Work:
    """The budget of one page, in bytes of UTF-8 that are handled, and its count of nested frames.

    Both engines spend the same for a page: what a text takes is the same whatever shortcut is taken.
    """

    def __init__(self, max_work: int) -> None:
        self._max_work = max_work
        self._left = max_work
        self._frames = 0
        self._waiting = 0

    def spend(self, amount: int) -> None:
        """Pay for so many bytes. LimitError when fewer are left."""
        self._left -= amount
        if self._left < 0:
            raise LimitError(f"took more than {self._max_work} bytes of work")

    def compute(self, function: str, arguments: list[str]) -> str:
        """Pay for a function that both engines leave to Python, and call it."""
        for argument in arguments:
            self.spend(PYTHON_WORK + PYTHON_BYTE_WORK * size_of(argument))
        value = compute(function, arguments)
        check_size(size_of(value))
        return value

    @contextmanager
    def frames(self, number: int = 1, waiting: int = 0) -> Iterator[None]:
        """Go so many frames deeper while a text of that size waits. TooDeepError beyond MAX_FRAMES."""
        if self._frames + number > MAX_FRAMES:
            self.spend(TOO_DEEP_WORK)
            raise TooDeepError("calls are nested too deep")
        check_size(self._waiting + waiting)
        self._frames += number
        self._waiting += waiting
        try:
            yield
        finally:
            self._frames -= number
            self._waiting -= waiting


def size_of(text: str) -> int:
    """The bytes of the text as UTF-8. A lone surrogate has three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def check_size(size: int) -> None:
    """LimitError for a text that would grow so large."""
    if size > MAX_TEXT:
        raise LimitError(f"grew beyond {MAX_TEXT >> 20} MiB of text")
