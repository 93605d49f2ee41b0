"""Handling of Ctrl-C (SIGINT) and SIGTERM while a command runs.

A signal is never lost. It always ends the command with the same exit status, even if the interrupted code
fails with another error.
"""

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

_AGAIN_SECONDS = 0.01
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


class Interrupt(KeyboardInterrupt):
    """The exception that is raised for SIGINT, and for SIGTERM, which job schedulers send.

    exit_status: 128 plus the number of the signal.
    """

    def __init__(self, signum: int) -> None:
        super().__init__()
        self.exit_status = 128 + signum


class Interrupts:
    """Context manager that raises Interrupt in its block when SIGINT or SIGTERM arrives.

    Python may raise the exception at any point of the program, where it can get lost in two ways:

    - In a finalizer or a callback, Python only prints the exception and continues. The signal is therefore
    raised again a moment later.
    - The interrupted code may fail with another error, for example because it closes a file twice. The block
    then ends with Interrupt instead of this error.

    While a module is being imported, the exception is delayed, because compiled libraries such as NumPy crash
    with SIGSEGV if their initialisation is interrupted. If the process ignores SIGINT, it stays ignored.
    """

    def __init__(self) -> None:
        self._came: int | None = None
        self._before: dict[int, Any] = {}
        self._hooks: tuple[Any, Any] = sys.unraisablehook, sys.excepthook

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._hooks = sys.unraisablehook, sys.excepthook
            sys.unraisablehook, sys.excepthook = self._handle_lost_exception, self._print_uncaught
            for signum in (signal.SIGTERM, signal.SIGINT):
                self._before[signum] = signal.getsignal(signum)
                if self._before[signum] is not signal.SIG_IGN:
                    signal.signal(signum, self._interrupt)
        return self

    def _interrupt(self, signum: int, frame: FrameType | None) -> None:
        """Handle SIGINT or SIGTERM. Python calls this method when the signal arrives."""
        self._came = signum
        self._raise_again(signum, frame)

    def _raise_again(self, signum: int, frame: FrameType | None) -> None:
        """Raise Interrupt for the signal that arrived.

        If a module is being imported, set a timer to try again later.

        This method is also the handler of SIGALRM, which the timer sends.
        """
        if self._came is None:
            return
        if _is_importing(frame):
            self._set_timer()
            return
        raise Interrupt(self._came)

    def _set_timer(self) -> None:
        """Set a timer that sends SIGALRM a moment later, so that the signal is handled again."""
        if signal.SIGALRM not in self._before:
            self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._raise_again)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)

    def _handle_lost_exception(self, forgotten: Any) -> None:
        """Handle an exception that Python cannot pass on, for example from a finalizer
        (``sys.unraisablehook``).
        """
        if isinstance(forgotten.exc_value, Interrupt):
            self._set_timer()
        # After a signal, finalizers may fail as a consequence, so their errors are shown only if no signal
        # arrived.
        elif self._came is None:
            self._hooks[0](forgotten)

    def _print_uncaught(self, *error: Any) -> None:
        """Print an uncaught exception (``sys.excepthook``), unless a signal arrived."""
        # No signal arrived, so the exception is shown. Compiled modules report failures in this way.
        if self._came is None:
            self._hooks[1](*error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._before:
            return
        if self._came is not None:
            from traceback import clear_frames  # slow to import

            # runs the finalizers of the interrupted code while the hooks of this class still catch their
            # errors
            clear_frames(trace)
        # Stop the timer before removing the handler of SIGALRM, because a SIGALRM without a handler would end
        # the process.
        if signal.SIGALRM in self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        self._before = {}
        sys.unraisablehook, sys.excepthook = self._hooks
        # A signal arrived, but the block ends with another error, which is a consequence of the signal.
        if self._came is not None and error is not None and not isinstance(error, Interrupt):
            raise Interrupt(self._came) from error


def _is_importing(frame: FrameType | None) -> bool:
    """Return True if the program is importing a module at this point.

    frame: the present stack frame. It and all frames that called it are searched.
    """
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT_SYSTEM:
            return True
        frame = frame.f_back
    return False
