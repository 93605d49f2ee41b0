"""Freed memory, given back to the system. Without glibc, the functions do nothing."""

from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's mallopt."""

_LARGE = 8 << 20
"""Bytes, so many that the pieces of sources lie below: memory of their own would cost 8 % of their time."""


def keep_less_freed_memory(large: int = _LARGE) -> None:
    """Make this process, and those forked from it, return more of the memory that they free.

    large: bytes of a block that gets memory of its own, which is returned with it. By default glibc raises
    that limit, up to 32 MiB, to the largest block freed so far, and keeps the most that smaller ones took.
    """
    for parameter, value in ((_MMAP_THRESHOLD, large), (_TRIM_THRESHOLD, 2 * large)):
        _call("mallopt", parameter, value)


def return_freed_memory() -> None:
    """Return what was freed so far, also between blocks in use."""
    _call("malloc_trim", 0)


def _call(name: str, *numbers: int) -> None:
    import ctypes  # imported here: a command with one worker may need none of it

    function: Any = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*numbers)
