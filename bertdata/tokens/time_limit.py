"""Calls functions of a library that may never return, or that write to stderr when they fail."""

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


class TimeLimitExceeded(Exception):
    """Error: the function passed to ``call_with_time_limit`` did not return in time."""


def call_with_time_limit(seconds: float, function: Callable[[], Result]) -> Result:
    """Call a function in a new thread, and return its result. The function must release Python's lock (GIL).

    TimeLimitExceeded if the call takes more than this number of seconds. In this case the call continues in
    its thread, because nothing can stop it. The process does not wait for this thread when it ends.
    """
    found: list[Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        """Call the function, and store its result or its error."""
        try:
            found.append(function())
        except BaseException as error:
            failed.append(error)

    # A thread cannot be killed. A daemon thread at least does not keep the process alive.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not found:
        raise TimeLimitExceeded
    return found[0]


@contextmanager
def without_stderr() -> Iterator[None]:
    """Hold back what the process writes to stderr while a block of code runs.

    If the block raises an error, the text is discarded, otherwise it is written at the end. A panic in Rust
    writes a long text to stderr, although the error that is raised says the same in one line.
    """
    if not _redirecting.acquire(blocking=False):  # Another thread is already holding back stderr.
        yield
        return
    try:
        with TemporaryFile() as held:
            sys.stderr.flush()
            # Replace the file descriptor itself, because Rust does not write through sys.stderr.
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
    """Write all of the data to the file descriptor of stderr."""
    while data:
        data = data[os.write(_STDERR, data) :]
