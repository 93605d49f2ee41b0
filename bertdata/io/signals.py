"""Blocks of code in which SIGINT and SIGTERM are delayed, or end the process immediately."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

INTERRUPTING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def delay_signals() -> Iterator[None]:
    """Delay SIGINT and SIGTERM until the end of the block. Does nothing outside the main thread.

    It protects code in which an exception at an arbitrary line would do damage. The Python handlers of the
    signals are replaced during the block. Blocking the signals in the main thread would not be enough:
    another thread might receive a signal, and Python would still run the handler in the main thread.
    """
    came: list[int] = []
    handlers: dict[signal.Signals, Any] = {}
    is_main = threading.current_thread() is threading.main_thread()
    try:
        for number in INTERRUPTING if is_main else ():
            if callable(handler := signal.getsignal(number)):
                handlers[number] = handler
                signal.signal(number, lambda number, frame: came.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for held in came:
            signal.raise_signal(held)


@contextmanager
def end_at_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C end the process at once during the block, unless a special handler is installed.

    Use it around imports of large packages, in which a KeyboardInterrupt can cause a confusing error of the
    package.
    """
    handler = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or handler is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
