"""Calls of a library that may never come back, or that writes to stderr when it fails."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any, TypeVar

Result = TypeVar("Result")

_STDERR = 2
_redirecting = threading.Lock()


class TooSlow(Exception):
    """The call has not ended within its time."""


def call_within(seconds: float, function: Callable[[], Result]) -> Result:
    """The result of a call that lets go of Python's lock. TooSlow where it takes longer.

    The call goes on in a thread of its own then, since nothing can stop it; it ends with the process, which
    does not wait for it.
    """
    found: list[Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(function())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not found:
        raise TooSlow
    return found[0]


@contextmanager
def without_stderr() -> Iterator[None]:
    """Hold back what the process writes to stderr, and drop it where the block fails.

    Rust's report of a panic goes there past Python; the error that the block raises says the same in a line.
    """
    if not _redirecting.acquire(blocking=False):  # another thread holds it back already
        yield
        return
    try:
        with TemporaryFile() as held:
            sys.stderr.flush()
            kept = os.dup(_STDERR)
            os.dup2(held.fileno(), _STDERR)
            try:
                yield
            finally:
                os.dup2(kept, _STDERR)
                os.close(kept)
            held.seek(0)
            if text := held.read():
                _write_all(text)
    finally:
        _redirecting.release()


def _write_all(data: bytes) -> Any:
    while data:
        data = data[os.write(_STDERR, data) :]
