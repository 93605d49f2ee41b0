"""Search for the child processes of a process in the directory /proc, which only Linux has."""

from collections.abc import Iterator
from pathlib import Path


def list_descendants(pid: int) -> Iterator[int]:
    """Yield the ids of all children of a process, and of their children.

    The resource tracker of Python's multiprocessing is left out.
    """
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, read_bytes(listed).split()):
            if b"resource_tracker" not in read_bytes(Path(f"/proc/{child}/cmdline")):
                yield child
            yield from list_descendants(child)


def read_bytes(path: Path) -> bytes:
    """Return the contents of a file below /proc. They are empty if the process has ended."""
    try:
        return path.read_bytes()
    except OSError:  # the process has ended
        return b""
