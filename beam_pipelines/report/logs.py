"""The log messages that a run prints: this package's warnings. Beam's own messages are not printed."""

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
def show_warnings(stream: TextIO | None = None) -> Iterator[None]:
    """Return a context manager that prints this package's warnings while its block runs.

    If several warnings differ only in file name or numbers, only the first is printed at once. A line at the
    end says how many were similar. Each process counts its own warnings.

    stream: where to print. None: to ``sys.stderr``, which is looked up again for every line.
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
    """Do not print the tracebacks of Beam's threads when the connection to a worker is lost.

    They say nothing new, because the run itself then ends with a clear error.
    """
    threading.excepthook = _print_thread_error


def silence_printed_tracebacks() -> None:
    """Do not print the tracebacks of workers that are threads of this process.

    They say nothing new, because the runner raises the same errors in the main thread.
    """
    from apache_beam.runners.worker import sdk_worker

    # This sets a global name ``print`` in Beam's module. The module's code then uses it instead of the
    # built-in function.
    sdk_worker.print = _print_nothing


def _print_nothing(*words: object, **options: object) -> None:
    """Do nothing. This function replaces ``print`` in Beam's worker module."""
    pass


def _print_thread_error(thread: threading.ExceptHookArgs) -> None:
    """Print the traceback of a thread that has failed, except after a lost connection."""
    if "RpcError" not in {kind.__name__ for kind in thread.exc_type.__mro__}:
        threading.__excepthook__(thread)


class _FoldedHandler(logging.Handler):
    """A handler that prints the first of several similar warnings and only counts the others.

    It looks up ``sys.stderr`` for every line, because a progress bar replaces it while the bar is shown.
    """

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self._stream = stream
        self._folded = FoldedWarnings()

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record's message if it is the first of its kind, otherwise count it."""
        if self._folded.is_first(record.getMessage()):
            self._print(self.format(record))

    def print_rest(self) -> None:
        """Print a line for each group of similar warnings, with the number of warnings not printed."""
        for warning in self._folded.summarise_others():
            self._print(f"{PROGRAM}: warning: {warning}")

    def _print(self, line: str) -> None:
        """Print a line to the stream that was chosen, or to ``sys.stderr``."""
        say_text(line, to=self._stream or sys.stderr)
