"""Measurement of the memory that a function needs."""

import tracemalloc
from collections.abc import Callable


def peak_bytes(run: Callable[[], object]) -> int:
    """Return the peak size of all Python objects during the call, in bytes."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
