"""Freed memory, given back to the system."""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's mallopt."""

_LARGE = 8 << 20
"""Bytes, so many that the pieces of sources lie below: memory of their own would cost 8 % of their time."""


def return_freed_memory(large: int = _LARGE) -> None:
    """Make this process, and those forked from it, return freed memory. Without glibc nothing changes.

    large: bytes of a block that gets memory of its own, which is returned with it. By default glibc raises
    that limit, up to 32 MiB, to the largest block freed so far, and keeps the most that smaller ones took.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, large)
        mallopt(_TRIM_THRESHOLD, 2 * large)
