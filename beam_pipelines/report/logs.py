"""What a person sees of a run's log: our warnings, and not Beam's account of its own workings."""

import logging
import sys
import threading
from typing import TextIO

from beam_pipelines.options import PROGRAM


def show_warnings(stream: TextIO | None = None) -> None:
    """Print our own warnings, and no one else's, on the stream, or on what standard error is by then."""
    handler = logging.StreamHandler(stream) if stream else _ToStandardError()
    handler.setFormatter(logging.Formatter(f"{PROGRAM}: warning: %(message)s"))
    handler.setLevel(logging.WARNING)
    handler.addFilter(logging.Filter("beam_pipelines"))
    logging.getLogger().handlers[:] = [handler]


def hush_lost_connections() -> None:
    """No tracebacks of Beam's threads that lose a worker: the run ends with an error of its own."""
    threading.excepthook = _tell_of_a_thread


def _tell_of_a_thread(thread: threading.ExceptHookArgs) -> None:
    if "RpcError" not in {kind.__name__ for kind in thread.exc_type.__mro__}:
        threading.__excepthook__(thread)


class _ToStandardError(logging.Handler):
    """A progress bar stands in for standard error while it is there, and prints lines above itself."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr, flush=True)
