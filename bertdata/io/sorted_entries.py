"""External sort of fixed-size byte strings, for more entries than fit in memory.

The entries are sorted in runs of RUN_ENTRIES entries. Each run is written to a nameless temporary file, and
the files are merged at the end. Memory holds a single run, about 64 MiB including Python's objects.
"""

import heapq
from collections.abc import Iterable, Iterator
from tempfile import TemporaryFile
from typing import BinaryIO

RUN_ENTRIES = 1 << 19
MOST_RUNS = 64
"""Number of runs that are merged at once, so that the process does not open too many files."""

_BLOCK_ENTRIES = 1 << 11


class SortedEntries:
    """A collection of entries that are added in any order and read in byte order.

    The temporary files disappear with the object or the process.

    entry_bytes: size of every entry in bytes.
    directory: directory for the temporary files. None: the system's default.
    """

    def __init__(self, entry_bytes: int, directory: str | None = None) -> None:
        self._entry_bytes = entry_bytes
        self._directory = directory
        self._held: list[bytes] = []
        self._levels: list[list[BinaryIO]] = []

    def add(self, entry: bytes) -> None:
        """Add an entry. Raises OSError if a temporary file cannot be written."""
        self._held.append(entry)
        if len(self._held) >= RUN_ENTRIES:
            self._held.sort()
            self._add_run(self._held, 0)
            self._held = []

    def _add_run(self, entries: Iterable[bytes], level: int) -> None:
        """Write sorted entries to a new file, a run, and add the run to the list of this level.

        A level's runs are merged into a run of the next level as soon as there are MOST_RUNS of them. So with
        64 runs per level, a run of level 1 holds the entries of 64 runs of level 0, and a run of level 2
        those of 4,096. Every entry is rewritten once per level, and at most 64 files per level are open.
        """
        if level == len(self._levels):
            self._levels.append([])
        runs = self._levels[level]
        runs.append(self._write_run(entries))
        if len(runs) >= MOST_RUNS:
            self._add_run(self._merge(runs), level + 1)
            _close(runs)

    def _write_run(self, entries: Iterable[bytes]) -> BinaryIO:
        """Write the entries to a new temporary file, and return the file."""
        file = TemporaryFile(dir=self._directory)  # noqa: SIM115 - closed by close
        file.writelines(entries)
        return file

    def _merge(self, runs: Iterable[BinaryIO]) -> Iterator[bytes]:
        """Yield the entries of several runs in order."""
        return heapq.merge(*map(self._read, runs))

    def _read(self, run: BinaryIO) -> Iterator[bytes]:
        """Yield the entries of a run, reading it in blocks."""
        run.seek(0)
        size = self._entry_bytes
        while block := run.read(size * _BLOCK_ENTRIES):
            for start in range(0, len(block), size):
                yield block[start : start + size]

    def __iter__(self) -> Iterator[bytes]:
        """Iterate over all entries in order. No entry may be added afterwards."""
        self._held.sort()
        runs = [run for level in self._levels for run in level]
        return heapq.merge(self._merge(runs), self._held) if runs else iter(self._held)

    def __enter__(self) -> "SortedEntries":
        return self

    def __exit__(self, *failure: object) -> None:
        for runs in self._levels:
            _close(runs)
        self._held = []


def _close(runs: list[BinaryIO]) -> None:
    """Close the files, which deletes them, and empty the list."""
    for run in runs:
        run.close()
    runs.clear()
