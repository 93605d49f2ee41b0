"""Settings of glibc's malloc that return freed memory to the system. They do nothing on other C libraries."""

from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameter numbers of glibc's mallopt()."""

_LARGE = 8 << 20
"""8 MiB: blocks from this size on are returned as soon as they are freed.

Blocks of input files are smaller. With a lower limit, the many system calls would cost 8 % of their time.
"""


def keep_less_freed_memory(large: int = _LARGE) -> None:
    """Make this process, and processes forked from it, return more of their freed memory to the system.

    By default glibc raises its threshold for large blocks to the largest block freed so far, up to 32 MiB,
    and keeps all smaller freed blocks. Setting the thresholds turns that growth off.

    large: size in bytes from which a block of memory is mapped separately. Such a block returns to the system
        as soon as it is freed.
    """
    for parameter, value in ((_MMAP_THRESHOLD, large), (_TRIM_THRESHOLD, 2 * large)):
        _call_libc("mallopt", parameter, value)


def return_freed_memory() -> None:
    """Return all memory freed so far to the system, also between blocks in use."""
    _call_libc("malloc_trim", 0)


def _call_libc(name: str, *numbers: int) -> None:
    """Call a function of the C library if it exists."""
    import ctypes  # imported here because it is slow to import

    function: Any = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*numbers)
