"""Limits of one piece of a worker's work, and the piece's name, for code that may never return.

The system itself ends a process that breaks a limit, so that no code within it can hold that up or take the
end for an error of its own: not a long operation of the interpreter, which runs no signal handler, nor an
``except`` that takes everything. So a piece either has the result that it has without limits, or the run
ends and names it.

The worker writes the name into memory that it shares with the process that started it.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAME_BYTES = 4096
"""Bytes of a name that are kept."""

CPU, MEMORY = "CPU", "memory"
"""The limits, as WorkerDied says which one was broken."""

_name: Any = None  # of the worker's own process; None in a process that no pool started


def share_name(shared: Any) -> None:
    """Make this process a worker: its names go into the shared array."""
    global _name
    _name = shared
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # which ends the process
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGPROF])


@contextmanager
def limited(name: str, cpu_seconds: float) -> Iterator[None]:
    """A piece of work that ends this worker if it takes more CPU seconds. No limit in any other process."""
    if _name is None:
        yield
        return
    _name.value = name.encode(errors="replace").replace(b"\0", b" ")[: NAME_BYTES - 1]
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        _name.value = b""


def own_memory(process: int) -> int | None:
    """Bytes of memory that the process shares with no file. None where the system does not tell."""
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            _, resident, shared, *_ = file.read().split()
    except (OSError, ValueError):
        return None
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
