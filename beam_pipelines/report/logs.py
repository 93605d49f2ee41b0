"""Log messages that a run shows: our warnings, none of Beam's own messages."""

import logging
import sys
import threading
from typing import TextIO

from beam_pipelines.options import PROGRAM
from bertdata.io.terminal import say_text


def show_warnings(stream: TextIO | None = None) -> None:
    """Print our own warnings and no others, on the stream; by default on the current standard error."""
    handler = logging.StreamHandler(stream) if stream else _ToStandardError()
    handler.setFormatter(logging.Formatter(f"{PROGRAM}: warning: %(message)s"))
    handler.setLevel(logging.WARNING)
    handler.addFilter(logging.Filter("beam_pipelines"))
    logging.getLogger().handlers[:] = [handler]


def silence_lost_connections() -> None:
    """Print no tracebacks of Beam's threads that lose a worker: the run ends with an error of its own."""
    threading.excepthook = _excepthook


def _excepthook(thread: threading.ExceptHookArgs) -> None:
    if "RpcError" not in {kind.__name__ for kind in thread.exc_type.__mro__}:
        threading.__excepthook__(thread)


class _ToStandardError(logging.Handler):
    """A handler that looks up ``sys.stderr`` each time: a progress bar replaces it while it is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        say_text(self.format(record), to=sys.stderr)
