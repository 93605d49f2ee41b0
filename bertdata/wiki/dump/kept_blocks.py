"""Blocks of a compressed dump, kept from the first pass for the second, so that it is decompressed once.

They wait in memory while they are small, then in a file that has no name: it is gone however the process
ends. Where the disk has not room enough for the whole text they are given up, and the dump is read again.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager

from bertdata.io.spooled_file import SpooledFile
from bertdata.wiki.dump.dump import PageBlock

_IN_MEMORY_BYTES = 32 << 20
_EXPECTED_RATIO = 8
"""A dump's text is some 4 to 6 times as large as its bzip2 file."""
_SPARE_BYTES = 1 << 30
_CHECKED_BYTES = 64 << 20
"""Room on the disk is looked at each time that so much more is kept."""


class KeptBlocks(AbstractContextManager["KeptBlocks"]):
    """Takes blocks one after another. Iterated, it gives them back any number of times, to ``taken_back``.

    directory: where the file lies, on a local disk. dump_bytes: size of the compressed dump. ``complete``
    once all have passed and none was given up.
    """

    def __init__(self, directory: str, dump_bytes: int) -> None:
        self._directory = directory
        self._in_memory: list[PageBlock] = []
        self._file = SpooledFile(0, directory)
        self._in_file: list[tuple[PageBlock, int]] = []  # without data, and its size
        self._bytes = self._checked = 0
        expected = dump_bytes * _EXPECTED_RATIO
        self._keeping = expected <= _IN_MEMORY_BYTES or self._has_room(expected)
        self.complete = False

    def passing(self, blocks: Iterable[PageBlock]) -> Iterator[PageBlock]:
        """The blocks, each kept as it passes."""
        for block in blocks:
            if self._keeping:
                self._keep(block)
            yield block
        self.complete = self._keeping

    def _keep(self, block: PageBlock) -> None:
        self._bytes += len(block.data)
        if self._bytes <= _IN_MEMORY_BYTES:
            self._in_memory.append(block)
            return
        try:
            self._file.write(block.data)
        except OSError:
            self._give_up()
            return
        self._in_file.append((block._replace(data=b""), len(block.data)))
        if self._bytes - self._checked > _CHECKED_BYTES:
            self._checked = self._bytes
            if not self._has_room(0):
                self._give_up()

    def _has_room(self, size: int) -> bool:
        disk = os.statvfs(self._directory)
        return disk.f_bavail * disk.f_frsize >= size + _SPARE_BYTES

    def _give_up(self) -> None:
        self._keeping = False
        self._in_memory.clear()
        self._in_file.clear()
        self._file.close()

    def __iter__(self) -> Iterator[PageBlock]:
        assert self.complete, "not all blocks were kept"
        yield from self._in_memory
        file = self._file.rewind()
        for block, size in self._in_file:
            yield block._replace(data=file.read(size))

    def taken_back(self) -> Iterator[PageBlock]:
        """The blocks for the last time. They are freed while workers are still busy."""
        yield from self
        self.complete = False
        self._give_up()

    def __exit__(self, *failure: object) -> None:
        self._file.close()
