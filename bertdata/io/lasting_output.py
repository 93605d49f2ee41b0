"""Standard output and error that keep working when their reader is gone.

A run of hours must not fail because nobody reads its output any more. That happens if the terminal is closed,
if the ``tee`` or ``grep -m1`` behind a pipe has ended, or if the shell closed the stream (``2>&-``).
Everything important is also in the run's log files.
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
"""Seconds to wait until the reader of a full pipe makes room. After that, the output is dropped.

Only descriptors in non-blocking mode (O_NONBLOCK) need this time limit, since a write to any other descriptor
waits by itself.
"""


class LastingFile(io.RawIOBase):
    """A writer to one of this process's file descriptors that never raises an error.

    Data that cannot be written is dropped. When the reader is gone, the descriptor itself is redirected to
    the null device, so that writes by C libraries and child processes cannot fail either.
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
            except BlockingIOError:  # a non-blocking pipe is full: wait until the reader has made room
                if not select.select([], [self._number], [], _FULL_SECONDS)[1]:
                    break
            except OSError as error:
                if error.errno in _GONE:
                    redirect_to_null_device(self._number)
                break  # for example a full disk: drop this line, a later line may find room again
        return len(whole)


@contextmanager
def protect_output(*names: str) -> Iterator[None]:
    """Make writing to the named standard streams never fail during the block.

    A stream that a caller has replaced by another object (as pytest does) is left alone. If stdout or stderr
    was already closed at the start of the process, it is replaced by the null device even if it is not named.

    names: ``stdout``, ``stderr`` or both.
    """
    before: dict[str, TextIO | None] = {}
    _reopen_closed_descriptors()
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream: TextIO | None = getattr(sys, name)
        if stream is None or (name in names and _find_descriptor(stream) == number):
            before[name] = stream
            setattr(sys, name, _open_lasting_stream(number, stream))
    try:
        yield
    finally:
        for name, stream in before.items():
            setattr(sys, name, stream)


def redirect_to_null_device(number: int) -> None:
    """Redirect a file descriptor of this process to the null device."""
    with suppress(OSError):  # too many open files
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != number:
            os.dup2(nowhere, number)
            os.close(nowhere)


def _reopen_closed_descriptors() -> None:
    """Open the null device for each standard descriptor (0, 1, 2) that is closed.

    Otherwise the next file that the process opens would get that number, and prints would be written into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            redirect_to_null_device(number)


def _find_descriptor(stream: TextIO) -> int | None:
    """Return the stream's file descriptor. Returns None if the stream has none or is closed."""
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):  # an in-memory stream, or a closed one
        return None


def _open_lasting_stream(number: int, stream: TextIO | None) -> TextIO:
    """Return an unbuffered text stream on a LastingFile, with the encoding of the stream that it replaces."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    errors = getattr(stream, "errors", None) or "backslashreplace"
    if stream is not None:
        with suppress(OSError, ValueError):
            stream.flush()
    # The type stubs require a buffered file. LastingFile.write always takes all bytes at once, so that no
    # buffer is needed.
    lasting: TextIO = io.TextIOWrapper(
        LastingFile(number),  # type: ignore[type-var]
        encoding,
        errors,
        newline="\n",
        write_through=True,
    )
    return lasting
