"""Limits of the work on a page: how deeply calls may be nested, and how many bytes may be processed."""

from collections.abc import Iterator
from contextlib import contextmanager

from bertdata.wiki.mlperf.compute import compute

MAX_TEXT = 256 << 20
"""Largest text of a page, in bytes of UTF-8.

The texts around the calls that are being expanded are included.
"""

MAX_DEPTH = 30
"""Largest number of template calls inside each other.

A template call inside that many others gives an empty text.
"""

MAX_PARAMETER_LEVEL = 10
"""Largest number of parameters inside each other. A parameter that is nested more deeply becomes empty."""

MAX_FRAMES = 977
"""Largest number of nested frames. It reproduces Python's default recursion limit of 1000 in WikiExtractor.

A frame is counted for each of these steps while it runs: expanding a text that contains ``{{``, evaluating a
call, transforming a text, filling in parameters, and evaluating the arguments of a template. A parser
function counts as two. In an article, 488 calls can therefore be nested in names of calls, or 244 calls in
branches of ``#if``.
"""

FUNCTION_FRAMES = 2

CALL_WORK = 1024
STEP_WORK = 64
TOO_DEEP_WORK = 4096
PYTHON_WORK = 1 << 14
PYTHON_BYTE_WORK = 128
"""Work that is counted in addition to the bytes that are processed.

CALL_WORK: for each call.
STEP_WORK: for each text that is expanded, or in which parameters are replaced.
TOO_DEEP_WORK: each time that calls are nested too deeply.
PYTHON_WORK: for each argument of a function that the C++ kernel too calls in Python.
PYTHON_BYTE_WORK: for each byte of such an argument.
"""


class LimitError(Exception):
    """Error: the work on a page exceeds its limit.

    The message completes a sentence that begins "page X: ".
    """


class TooDeepError(Exception):
    """Error: calls are nested more deeply than MAX_FRAMES.

    If the calls are inside a parser function, it catches the error, and its value is empty. Otherwise the
    page fails.
    """


class Work:
    """Counter of the work on a page: how many bytes were processed, and how deeply calls are nested.

    The C++ kernel and the Python code count the same work for a page, even if one of them computes a result
    in a faster way.
    """

    def __init__(self, max_work: int) -> None:
        self._max_work = max_work
        self._left = max_work
        self._frames = 0
        self._waiting = 0

    def spend(self, amount: int) -> None:
        """Count bytes that are about to be processed.

        amount: number of bytes.

        Raises LimitError if the total exceeds the limit for the page.
        """
        self._left -= amount
        if self._left < 0:
            raise LimitError(f"took more than {self._max_work} bytes of work")

    def compute(self, function: str, arguments: list[str]) -> str:
        """Count the work for an arithmetic or regular expression, and return its value.

        function, arguments: as for the function ``compute`` of the module ``compute``.
        """
        for argument in arguments:
            self.spend(PYTHON_WORK + PYTHON_BYTE_WORK * count_bytes(argument))
        value = compute(function, arguments)
        check_text_size(count_bytes(value))
        return value

    @contextmanager
    def enter_frames(self, number: int = 1, waiting: int = 0) -> Iterator[None]:
        """Count ``number`` more frames (levels of nesting) while a block of code runs.

        waiting: number of bytes of the text around the call, which stays in memory meanwhile.

        Raises TooDeepError if there are more than MAX_FRAMES frames.
        """
        # WikiExtractor is recursive, and fails at Python's recursion limit. Because frames are counted here,
        # the C++ kernel and the Python code fail at the same depth, whatever the stack of the process is.
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
    """Return the size of a text in bytes of UTF-8. Half a surrogate pair counts as three bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def check_text_size(size: int) -> None:
    """Raise LimitError if a text of ``size`` bytes would be larger than MAX_TEXT."""
    if size > MAX_TEXT:
        raise LimitError(f"grew beyond {MAX_TEXT >> 20} MiB of text")
