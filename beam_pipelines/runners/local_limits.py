"""The largest number of workers that a run may start on this machine."""

from bertdata.io.process_pool import count_available_cores

_FOR_EACH_CORE = 16


def limit_workers() -> int:
    """Return the largest number of workers that a run may start on this machine.

    Each worker is a thread, or a process that takes at least 100 MB.
    """
    return max(64, _FOR_EACH_CORE * count_available_cores())
