"""Child processes of a run, found in /proc. Linux only."""

from collections.abc import Iterator
from pathlib import Path


def list_descendants(pid: int) -> Iterator[int]:
    """Yield the ids of all child processes and their children, without multiprocessing's resource tracker."""
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, read_bytes(listed).split()):
            if b"resource_tracker" not in read_bytes(Path(f"/proc/{child}/cmdline")):
                yield child
            yield from list_descendants(child)


def read_bytes(path: Path) -> bytes:
    """Return the content of a file below /proc. The result is empty if the process has ended."""
    try:
        return path.read_bytes()
    except OSError:  # the process has ended
        return b""
