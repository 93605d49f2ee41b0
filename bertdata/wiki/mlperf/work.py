"""Limits of the work on one page: depth of nesting as in WikiExtractor, and the number of bytes handled."""

from collections.abc import Iterator
from contextlib import contextmanager

from bertdata.wiki.mlperf.compute import compute

MAX_TEXT = 256 << 20
"""Largest text of a page in bytes of UTF-8, including outer texts around calls that are being expanded."""

MAX_DEPTH = 30
"""How deep templates may call templates. A call at this depth gives an empty text."""

MAX_PARAMETER_LEVEL = 10
"""How deep parameters may be nested in each other. A parameter nested more deeply is empty."""

MAX_FRAMES = 977
"""Limit of nested frames, which reproduces Python's default recursion limit of 1000.

A frame is entered to expand a text that contains ``{{``, to evaluate a call, to transform a text, to fill in
parameters, and to evaluate the arguments of a template. A parser function enters two. So 488 calls can be
nested in names in an article, or 244 branches of ``#if``.
"""

FUNCTION_FRAMES = 2

CALL_WORK = 1024
STEP_WORK = 64
TOO_DEEP_WORK = 4096
PYTHON_WORK = 1 << 14
PYTHON_BYTE_WORK = 128
"""Work charged in addition to the bytes handled.

CALL_WORK: per call.
STEP_WORK: per expansion or substitution.
TOO_DEEP_WORK: per nesting that is too deep.
PYTHON_WORK: per argument of a function that both engines leave to Python.
PYTHON_BYTE_WORK: per byte of such an argument.
"""


class LimitError(Exception):
    """Raised if the work on a page exceeds its limit. The message completes the sentence "page X: ..."."""


class TooDeepError(Exception):
    """Raised if calls are nested more deeply than MAX_FRAMES.

    A parser function around the calls catches it and becomes empty. Otherwise the page fails.
    """


class Work:
    """Counter of the work on one page: bytes handled, and depth of nesting.

    The C++ kernel and the Python code count the same work for a page, even where they take shortcuts.
    """

    def __init__(self, max_work: int) -> None:
        self._max_work = max_work
        self._left = max_work
        self._frames = 0
        self._waiting = 0

    def spend(self, amount: int) -> None:
        """Subtract the number of bytes that are about to be handled from the work that is left for the page.

        Raises LimitError if too little is left.
        """
        self._left -= amount
        if self._left < 0:
            raise LimitError(f"took more than {self._max_work} bytes of work")

    def compute(self, function: str, arguments: list[str]) -> str:
        """Count the work for an arithmetic or regular expression, and evaluate it by ``compute.compute``."""
        for argument in arguments:
            self.spend(PYTHON_WORK + PYTHON_BYTE_WORK * count_bytes(argument))
        value = compute(function, arguments)
        check_text_size(count_bytes(value))
        return value

    @contextmanager
    def enter_frames(self, number: int = 1, waiting: int = 0) -> Iterator[None]:
        """Context manager that counts ``number`` more levels of nesting while it is active.

        waiting: bytes of the outer text that stays in memory meanwhile.

        Raises TooDeepError beyond MAX_FRAMES.
        """
        # WikiExtractor recurses in Python and fails at the interpreter's limit. Counting frames here gives
        # the same limit in the C++ kernel and in Python, without depending on the stack of the process.
        if self._frames + number > MAX_FRAMES:
            self.spend(TOO_DEEP_WORK)
            raise TooDeepError("calls are nested too deep")
        check_text_size(self._waiting + waiting)
        self._frames += number
        self._waiting += waiting
        try:
            yield
        finally:
            self._frames -= number
            self._waiting -= waiting


def count_bytes(text: str) -> int:
    """Return the size of the text in bytes of UTF-8. A lone surrogate counts three bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def check_text_size(size: int) -> None:
    """Raise LimitError if a text of ``size`` bytes would be larger than MAX_TEXT."""
    if size > MAX_TEXT:
        raise LimitError(f"grew beyond {MAX_TEXT >> 20} MiB of text")
