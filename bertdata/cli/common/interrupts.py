"""Handling of Ctrl-C and SIGTERM while a command runs.

A signal is never lost, and it always ends the command with the same exit status, even if it breaks code that
then fails with another error.
"""

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

_AGAIN_SECONDS = 0.01
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


class Interrupt(KeyboardInterrupt):
    """The exception for SIGINT, and for SIGTERM, which schedulers send.

    exit_status: 128 plus the signal's number.
    """

    def __init__(self, signum: int) -> None:
        super().__init__()
        self.exit_status = 128 + signum


class Interrupts:
    """Context manager in which SIGINT and SIGTERM raise Interrupt.

    Python may raise the exception at any instruction, and two things can hide it:

    - In a finalizer or a callback, Python prints the exception and continues. The signal is then raised again
      a moment later.
    - Interrupted code may fail with another error, such as a file that is closed twice. The block then still
      ends with Interrupt.

    While a module is being imported, the signal waits. Compiled libraries such as NumPy crash with SIGSEGV if
    their initialisation is interrupted. A SIGINT that the process ignores stays ignored.
    """

    def __init__(self) -> None:
        self._came: int | None = None
        self._before: dict[int, Any] = {}
        self._hooks: tuple[Any, Any] = sys.unraisablehook, sys.excepthook

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._hooks = sys.unraisablehook, sys.excepthook
            sys.unraisablehook, sys.excepthook = self._report_forgotten, self._print_uncaught
            for signum in (signal.SIGTERM, signal.SIGINT):
                self._before[signum] = signal.getsignal(signum)
                if self._before[signum] is not signal.SIG_IGN:
                    signal.signal(signum, self._interrupt)
        return self

    def _interrupt(self, signum: int, frame: FrameType | None) -> None:
        """Handle SIGINT or SIGTERM."""
        self._came = signum
        self._raise_again(signum, frame)

    def _raise_again(self, signum: int, frame: FrameType | None) -> None:
        """Raise Interrupt for the signal that came, or wait if a module is being imported.

        Also handles SIGALRM.
        """
        if self._came is None:
            return
        if _is_importing(frame):
            self._set_timer()
            return
        raise Interrupt(self._came)

    def _set_timer(self) -> None:
        """Set a timer, whose SIGALRM handles the signal again a moment later."""
        if signal.SIGALRM not in self._before:
            self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._raise_again)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)

    def _report_forgotten(self, forgotten: Any) -> None:
        """Handle an exception that Python cannot raise, such as in a finalizer (``sys.unraisablehook``)."""
        if isinstance(forgotten.exc_value, Interrupt):
            self._set_timer()
        # after an interrupt, finalizers may fail too. Such an error is only a consequence, so it is not shown
        elif self._came is None:
            self._hooks[0](forgotten)

    def _print_uncaught(self, *error: Any) -> None:
        """Print an uncaught exception (``sys.excepthook``), unless the command was interrupted."""
        # no signal came, so show the error; compiled modules report failures in this way
        if self._came is None:
            self._hooks[1](*error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._before:
            return
        if self._came is not None:
            from traceback import clear_frames  # slow to import

            clear_frames(trace)  # run the finalizers of interrupted code before our hooks are removed
        # Stop the timer before removing the handler of SIGALRM, because a SIGALRM without a handler would end
        # the process.
        if signal.SIGALRM in self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        self._before = {}
        sys.unraisablehook, sys.excepthook = self._hooks
        # A signal came, but the block ends with another error. This error is a consequence of the signal, so
        # raise Interrupt instead.
        if self._came is not None and error is not None and not isinstance(error, Interrupt):
            raise Interrupt(self._came) from error


def _is_importing(frame: FrameType | None) -> bool:
    """Return True if this frame or one that called it is importing a module."""
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT_SYSTEM:
            return True
        frame = frame.f_back
    return False
