"""Blocks that SIGINT and SIGTERM do not cut short, or end at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

INTERRUPTING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold SIGINT and SIGTERM back until the end of the block. In another thread than the main one, nothing.

    For code that cannot bear an exception at any point. Handlers are replaced, not signals blocked: any
    thread may take a signal, and Python then runs its handler in the main thread.
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
def ctrl_c_at_once() -> Iterator[None]:
    """Let SIGINT end the process in the block, unless this process handles it in a way of its own.

    For imports of large packages: where KeyboardInterrupt cuts one short, it ends in an error of the package.
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
