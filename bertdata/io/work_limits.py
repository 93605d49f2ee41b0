"""CPU and memory limits for an item that a worker works on, such as one Wikipedia article.

The operating system kills a process that exceeds a limit. An exception would not be enough: a long C
operation of the interpreter runs no signal handlers, and an ``except`` clause could swallow the exception. So
either the work has the same result as without limits, or the run ends with an error that names the item.

For that error, the worker writes the name of its current item into memory that it shares with the parent
process.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAME_BYTES = 4096
"""Most bytes of an item's name. A longer name is cut."""

CPU, MEMORY = "CPU", "memory"
"""Names of the two limits, as they appear in ``WorkerDied.limit``."""

_name: Any = None  # shared array with the current piece's name; None in a process that is not a worker


def share_work_name(shared: Any) -> None:
    """Make this process a worker that stores the name of its current item in the shared array."""
    global _name
    _name = shared
    # The CPU timer below sends SIGPROF, whose default action ends the process.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGPROF])


@contextmanager
def limit_cpu_time(name: str, cpu_seconds: float) -> Iterator[None]:
    """Kill this worker process if the block uses more CPU time.

    Does nothing in a process that is not a worker.

    name: name of the item that the block works on, for the error message.
    cpu_seconds: the limit.
    """
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


def measure_private_memory(process: int) -> int | None:
    """Return how many bytes of a process's memory are not shared with files. Returns None without /proc."""
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            _, resident, shared, *_ = file.read().split()
    except (OSError, ValueError):
        return None
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
