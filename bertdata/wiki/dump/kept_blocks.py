"""Keeps the blocks of a compressed dump from the first pass, so that the second pass need not decompress it
again.

Small dumps are kept in memory. Larger dumps are kept in a temporary file without a name, which disappears
when the process ends for any reason. If the disk is too small for the whole text, no blocks are kept, and the
second pass reads the dump again.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager

from bertdata.io.spooled_file import SpooledFile
from bertdata.wiki.dump.dump import PageBlock

_IN_MEMORY_BYTES = 32 << 20
_EXPECTED_RATIO = 8
"""Estimate of the size of a dump's text divided by the size of its bzip2 file. The real ratio is 4 to 6."""
_SPARE_BYTES = 1 << 30
_CHECKED_BYTES = 64 << 20
"""The free space on the disk is checked whenever this number of bytes has been added."""


class KeptBlocks(AbstractContextManager["KeptBlocks"]):
    """Store of a dump's blocks of pages. It can be iterated several times, until ``read_and_free`` is called.

    directory: local directory for the temporary file.
    dump_bytes: size of the compressed dump in bytes.
    complete: whether all blocks of the dump are kept.
    """

    def __init__(self, directory: str, dump_bytes: int) -> None:
        self._directory = directory
        self._in_memory: list[PageBlock] = []
        self._file = SpooledFile(0, directory)
        # blocks without their data, and the size of the data in the temporary file
        self._in_file: list[tuple[PageBlock, int]] = []
        self._bytes = self._checked = 0
        # Estimate before the first block whether the text fits on the disk. Otherwise the first pass might
        # fill the disk and then have to drop all blocks.
        expected = dump_bytes * _EXPECTED_RATIO
        self._keeping = expected <= _IN_MEMORY_BYTES or self._has_room(expected)
        self.complete = False

    def keep_all(self, blocks: Iterable[PageBlock]) -> Iterator[PageBlock]:
        """Yield the blocks unchanged, and keep them as long as there is enough space on the disk."""
        for block in blocks:
            if self._keeping:
                self._keep(block)
            yield block
        self.complete = self._keeping

    def _keep(self, block: PageBlock) -> None:
        """Keep a block in memory or in the temporary file."""
        self._bytes += len(block.data)
        if self._bytes <= _IN_MEMORY_BYTES:
            self._in_memory.append(block)
            return
        try:
            self._file.write(block.data)
        except OSError:
            self._drop_all()
            return
        self._in_file.append((block._replace(data=b""), len(block.data)))
        if self._bytes - self._checked > _CHECKED_BYTES:
            self._checked = self._bytes
            if not self._has_room(0):
                self._drop_all()

    def _has_room(self, size: int) -> bool:
        """Return True if the disk has room for ``size`` more bytes, and some space is left afterwards."""
        disk = os.statvfs(self._directory)
        return disk.f_bavail * disk.f_frsize >= size + _SPARE_BYTES

    def _drop_all(self) -> None:
        """Drop all blocks, and keep no further blocks."""
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

    def read_and_free(self) -> Iterator[PageBlock]:
        """Yield the blocks for the last time, and free their memory as soon as the last block has been read.

        The memory is therefore free while workers still process the last blocks.
        """
        yield from self
        self.complete = False
        self._drop_all()

    def __exit__(self, *failure: object) -> None:
        self._file.close()
