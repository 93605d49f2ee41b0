"""Ctrl-C and SIGTERM while a command runs: never lost, and the end of the command whatever they break."""

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

_AGAIN_SECONDS = 0.01
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


class Interrupt(KeyboardInterrupt):
    """SIGINT, or SIGTERM, which schedulers send, came. The command's exit status tells which."""

    def __init__(self, signum: int) -> None:
        super().__init__()
        self.exit_status = 128 + signum


class Interrupts:
    """A block in which SIGINT and SIGTERM raise Interrupt.

    The exception may arise anywhere, so two things may hide it. Python prints and forgets an exception in a
    finalizer or a callback: the signal is then handled again a moment later. And code that it cut short may
    fail with an error of its own (a file closed twice): the block still ends with Interrupt. A SIGINT that
    the process ignores stays ignored.

    While a module is imported, the signal waits: libraries of compiled code that are cut short while they set
    themselves up (NumPy) end the process with SIGSEGV.
    """

    def __init__(self) -> None:
        self._came: int | None = None
        self._before: dict[int, Any] = {}
        self._hooks: tuple[Any, Any] = sys.unraisablehook, sys.excepthook

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._hooks = sys.unraisablehook, sys.excepthook
            sys.unraisablehook, sys.excepthook = self._report_forgotten, self._report
            for signum in (signal.SIGTERM, signal.SIGINT):
                self._before[signum] = signal.getsignal(signum)
                if self._before[signum] is not signal.SIG_IGN:
                    signal.signal(signum, self._interrupt)
        return self

    def _interrupt(self, signum: int, frame: FrameType | None) -> None:
        self._came = signum
        self._raise_again(signum, frame)

    def _raise_again(self, signum: int, frame: FrameType | None) -> None:
        if self._came is None:
            return
        if _is_importing(frame):
            self._wait()
            return
        raise Interrupt(self._came)

    def _wait(self) -> None:
        """Handle the signal again a moment later."""
        if signal.SIGALRM not in self._before:
            self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._raise_again)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)

    def _report_forgotten(self, forgotten: Any) -> None:
        if isinstance(forgotten.exc_value, Interrupt):
            self._wait()
        elif self._came is None:  # after an interrupt, finalizers of what it cut short may fail
            self._hooks[0](forgotten)

    def _report(self, *error: Any) -> None:
        if self._came is None:  # as above, of compiled modules, which report in their own way
            self._hooks[1](*error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._before:
            return
        if self._came is not None:
            from traceback import clear_frames  # slow to import

            clear_frames(trace)  # finalizers of what was cut short run now
        if signal.SIGALRM in self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        self._before = {}
        sys.unraisablehook, sys.excepthook = self._hooks
        if self._came is not None and error is not None and not isinstance(error, Interrupt):
            raise Interrupt(self._came) from error


def _is_importing(frame: FrameType | None) -> bool:
    """True where an import is under way in these frames."""
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT_SYSTEM:
            return True
        frame = frame.f_back
    return False
