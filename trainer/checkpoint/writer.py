"""Checkpoints written in a thread, while training continues."""

import threading
from collections.abc import Callable


class CheckpointWriter:
    """One write at a time, in a thread that does not keep an interrupted process alive.

    A failure is kept until ``wait`` returns it; on_failure is called at once, in the thread.
    """

    def __init__(self, on_failure: Callable[[], None]) -> None:
        self._on_failure = on_failure
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None

    def start(self, write: Callable[[], object]) -> None:
        """Start a write; the one before must have been waited for."""
        assert self._thread is None
        self._thread = threading.Thread(target=self._run, args=[write], daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> Exception | None:
        """Wait for the end of the write under way, for so many seconds at most; returns its failure."""
        if self._thread is not None:
            self._thread.join(seconds)
            self._thread = None
        failure, self._failure = self._failure, None
        return failure

    def _run(self, write: Callable[[], object]) -> None:
        try:
            write()
        except Exception as error:
            self._failure = error
            self._on_failure()
