"""Log messages that a run shows: our warnings, none of Beam's own messages."""

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from beam_pipelines.options import PROGRAM
from bertdata.cli.common.folded_warnings import FoldedWarnings
from bertdata.io.terminal import say_text


@contextmanager
def shown_warnings(stream: TextIO | None = None) -> Iterator[None]:
    """Print our own warnings and no others: the first of each kind at once, the others folded at the end.

    stream: by default the current standard error. Each process folds its own.
    """
    handler = _FoldedHandler(stream)
    handler.setFormatter(logging.Formatter(f"{PROGRAM}: warning: %(message)s"))
    handler.setLevel(logging.WARNING)
    handler.addFilter(logging.Filter("beam_pipelines"))
    logging.getLogger().handlers[:] = [handler]
    try:
        yield
    finally:
        handler.print_rest()


def silence_lost_connections() -> None:
    """Print no tracebacks of Beam's threads that lose a worker: the run ends with an error of its own."""
    threading.excepthook = _excepthook


def silence_printed_tracebacks() -> None:
    """Print no traceback where a worker is a thread of this process: the runner raises the error too."""
    from apache_beam.runners.worker import sdk_worker

    sdk_worker.print = _print_nothing  # the module's own name, in front of the built-in one


def _print_nothing(*words: object, **options: object) -> None:
    pass


def _excepthook(thread: threading.ExceptHookArgs) -> None:
    if "RpcError" not in {kind.__name__ for kind in thread.exc_type.__mro__}:
        threading.__excepthook__(thread)


class _FoldedHandler(logging.Handler):
    """A handler that looks up ``sys.stderr`` each time: a progress bar replaces it while it is shown."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self._stream = stream
        self._folded = FoldedWarnings()

    def emit(self, record: logging.LogRecord) -> None:
        if self._folded.is_first(record.getMessage()):
            self._print(self.format(record))

    def print_rest(self) -> None:
        """Print a line about the others of each kind."""
        for warning in self._folded.rest():
            self._print(f"{PROGRAM}: warning: {warning}")

    def _print(self, line: str) -> None:
        say_text(line, to=self._stream or sys.stderr)
