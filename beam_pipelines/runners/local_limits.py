"""Limits of the workers that a run starts on this machine."""

from bertdata.io.process_pool import available_cores

_FOR_EACH_CORE = 16


def most_workers() -> int:
    """Return the most workers that a run may ask for: each is a process of 100 MB and more, or a thread."""
    return max(64, _FOR_EACH_CORE * available_cores())
