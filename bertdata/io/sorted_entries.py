"""Entries of bytes of one size, sorted on disk: runs in files without a name, then a merge.

Memory holds a run, however many entries there are: 64 MiB with the bytes of each as an object.
"""

import heapq
from collections.abc import Iterable, Iterator
from tempfile import TemporaryFile
from typing import BinaryIO

RUN_ENTRIES = 1 << 19
MOST_RUNS = 64
"""Runs that are merged at a time, so that no process opens too many files."""

_BLOCK_ENTRIES = 1 << 11


class SortedEntries:
    """Entries that are added in any order and read in the order of their bytes.

    directory: of the files, None: the system's for such files. They go with the object, or the process.
    """

    def __init__(self, entry_bytes: int, directory: str | None = None) -> None:
        self._entry_bytes = entry_bytes
        self._directory = directory
        self._held: list[bytes] = []
        self._levels: list[list[BinaryIO]] = []

    def add(self, entry: bytes) -> None:
        """Add an entry. OSError as from the disk."""
        self._held.append(entry)
        if len(self._held) >= RUN_ENTRIES:
            self._held.sort()
            self._add_run(self._held, 0)
            self._held = []

    def _add_run(self, entries: Iterable[bytes], level: int) -> None:
        """Write a run. Many runs of a level become one of the next."""
        if level == len(self._levels):
            self._levels.append([])
        runs = self._levels[level]
        runs.append(self._written(entries))
        if len(runs) >= MOST_RUNS:
            self._add_run(self._merged(runs), level + 1)
            _close(runs)

    def _written(self, entries: Iterable[bytes]) -> BinaryIO:
        file = TemporaryFile(dir=self._directory)  # noqa: SIM115 - closed by close
        file.writelines(entries)
        return file

    def _merged(self, runs: Iterable[BinaryIO]) -> Iterator[bytes]:
        return heapq.merge(*map(self._read, runs))

    def _read(self, run: BinaryIO) -> Iterator[bytes]:
        run.seek(0)
        size = self._entry_bytes
        while block := run.read(size * _BLOCK_ENTRIES):
            for start in range(0, len(block), size):
                yield block[start : start + size]

    def __iter__(self) -> Iterator[bytes]:
        """The entries in order. Nothing is added afterwards."""
        self._held.sort()
        runs = [run for level in self._levels for run in level]
        return heapq.merge(self._merged(runs), self._held) if runs else iter(self._held)

    def __enter__(self) -> "SortedEntries":
        return self

    def __exit__(self, *failure: object) -> None:
        for runs in self._levels:
            _close(runs)
        self._held = []


def _close(runs: list[BinaryIO]) -> None:
    for run in runs:
        run.close()
    runs.clear()
