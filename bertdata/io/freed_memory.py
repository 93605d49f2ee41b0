"""Settings of glibc's malloc that return freed memory to the system. They do nothing on other C libraries."""

from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameter numbers of glibc's mallopt()."""

_LARGE_BLOCK = 8 << 20
"""Size in bytes (8 MiB) from which a block of memory goes back to the system as soon as it is freed.

The blocks in which input files are read are smaller. If they went back to the system too, the many system
calls would make reading 8 % slower.
"""


def keep_less_freed_memory(large: int = _LARGE_BLOCK) -> None:
    """Make this process, and processes forked from it, return more of their freed memory to the system.

    By default glibc keeps freed memory for later use. Only blocks above a threshold go back to the system,
    and glibc raises the threshold to the largest block freed so far, up to 32 MiB. This function fixes the
    threshold.

    large: the threshold in bytes. A larger block goes back to the system as soon as it is freed.
    """
    for parameter, value in ((_MMAP_THRESHOLD, large), (_TRIM_THRESHOLD, 2 * large)):
        _call_libc("mallopt", parameter, value)


def return_freed_memory() -> None:
    """Return all memory that was freed so far to the system, even if it lies between blocks in use."""
    _call_libc("malloc_trim", 0)


def _call_libc(name: str, *numbers: int) -> None:
    """Call a function of the C library if it exists."""
    import ctypes  # imported here because it is slow to import

    function: Any = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*numbers)
