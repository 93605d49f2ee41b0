"""Keep the blocks of a compressed dump from the first pass, so that the second need not decompress it.

Small dumps are kept in memory, larger ones in a temporary file without a name, which disappears however the
process ends. If the disk is too small for the whole text, the blocks are dropped and the dump is read again.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager

from bertdata.io.spooled_file import SpooledFile
from bertdata.wiki.dump.dump import PageBlock

_IN_MEMORY_BYTES = 32 << 20
_EXPECTED_RATIO = 8
"""Estimated ratio of a dump's text to its bzip2 file. The real ratio is 4 to 6."""
_SPARE_BYTES = 1 << 30
_CHECKED_BYTES = 64 << 20
"""The free space on the disk is checked each time that this many more bytes are kept."""


class KeptBlocks(AbstractContextManager["KeptBlocks"]):
    """Store of a dump's blocks of pages. It can be iterated any number of times before ``take_back``.

    directory: local directory of the temporary file.
    dump_bytes: size of the compressed dump.
    complete: whether all blocks of the dump are kept.
    """

    def __init__(self, directory: str, dump_bytes: int) -> None:
        self._directory = directory
        self._in_memory: list[PageBlock] = []
        self._file = SpooledFile(0, directory)
        self._in_file: list[tuple[PageBlock, int]] = []  # block without its data, size of the data
        self._bytes = self._checked = 0
        # Decide at the start whether the text will fit on the disk. Otherwise the first pass might fill the
        # disk and then have to drop everything.
        expected = dump_bytes * _EXPECTED_RATIO
        self._keeping = expected <= _IN_MEMORY_BYTES or self._has_room(expected)
        self.complete = False

    def keep_all(self, blocks: Iterable[PageBlock]) -> Iterator[PageBlock]:
        """Yield the blocks, and keep each as long as there is enough disk space."""
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

    def take_back(self) -> Iterator[PageBlock]:
        """Yield the blocks for the last time, and free them as soon as the last block is read.

        The memory is free while workers still process the last blocks.
        """
        yield from self
        self.complete = False
        self._give_up()

    def __exit__(self, *failure: object) -> None:
        self._file.close()
