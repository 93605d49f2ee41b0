"""Memory that a function takes."""

import tracemalloc
from collections.abc import Callable


def peak_bytes(run: Callable[[], object]) -> int:
    """The most bytes of Python objects at once during the call."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
