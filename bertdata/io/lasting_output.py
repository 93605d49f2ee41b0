"""Standard output and error that outlive their terminal.

A run of hours must not end because nobody reads its lines any more: ``2>&1 | grep -m1 step``, a ``tee`` that
was killed, a terminal that was closed, ``2>&-``. Its files have all that it has to say.
"""

import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from typing_extensions import Buffer

_GONE = (errno.EPIPE, errno.EIO, errno.EBADF, errno.ENXIO)
_FULL_SECONDS = 10.0
"""Seconds to wait for a reader who is slow, where writing does not wait by itself (O_NONBLOCK)."""


class LastingFile(io.RawIOBase):
    """A file descriptor of this process to which writing never fails.

    What cannot be written is dropped. Once the reader is gone, all that is written to the descriptor goes to
    the null device, also what libraries of compiled code and child processes write.
    """

    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return os.isatty(self._number)

    def writable(self) -> bool:
        return True

    def write(self, data: "Buffer", /) -> int:
        whole = memoryview(data).cast("B")
        left = whole
        while left:
            try:
                left = left[os.write(self._number, left) :]
            except BlockingIOError:
                if not select.select([], [self._number], [], _FULL_SECONDS)[1]:
                    break
            except OSError as error:
                if error.errno in _GONE:
                    open_nowhere(self._number)
                break  # a disk that is full now may have room for a later line
        return len(whole)


@contextmanager
def lasting_output(*names: str) -> Iterator[None]:
    """Let no write to these standard files fail in the block. Files that a caller put in their place stay.

    names: of ``stdout`` and ``stderr``. Of both, one that was closed before the start is the null device.
    """
    before: dict[str, TextIO | None] = {}
    _fill_closed()
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream: TextIO | None = getattr(sys, name)
        if stream is None or (name in names and _number_of(stream) == number):
            before[name] = stream
            setattr(sys, name, _open(number, stream))
    try:
        yield
    finally:
        for name, stream in before.items():
            setattr(sys, name, stream)


def open_nowhere(number: int) -> None:
    """Make the null device of this file descriptor."""
    with suppress(OSError):  # no descriptors are left
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != number:
            os.dup2(nowhere, number)
            os.close(nowhere)


def _fill_closed() -> None:
    """Open the null device for closed standard files: the next file opened would take their place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            open_nowhere(number)


def _number_of(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):  # no file of the system, or closed
        return None


def _open(number: int, stream: TextIO | None) -> TextIO:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    errors = getattr(stream, "errors", None) or "backslashreplace"
    if stream is not None:
        with suppress(OSError, ValueError):
            stream.flush()
    # The type stubs want a buffered file; this one takes all that it is given, and at once.
    lasting: TextIO = io.TextIOWrapper(
        LastingFile(number),  # type: ignore[type-var]
        encoding,
        errors,
        newline="\n",
        write_through=True,
    )
    return lasting
