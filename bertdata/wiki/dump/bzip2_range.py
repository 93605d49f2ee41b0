"""Reads the blocks of a bzip2 file that start in a byte range, and goes on with the blocks after the
range.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from bertdata._native import Engine, default_engine
from bertdata.wiki.dump.bzip2 import NoText, decompress_block, decompress_pieces
from bertdata.wiki.dump.bzip2_blocks import Block, find_blocks
from bertdata.wiki.ranges.links import BlockChecksums, RangeLink, make_damaged_error


@dataclass(frozen=True, slots=True)
class _TextBlock:
    """A block with its decompressed text.

    bit: bit of the file at which the block starts.
    text: decompressed text, or NoText.TOO_LONG if the text is so long that it must be decompressed in pieces.
    """

    block: Block
    bit: int
    text: bytes | NoText


class Bzip2Range:
    """Reader of the blocks that start in a byte range of a file, and of the blocks after them.

    start, stop: first byte of the range, and the byte after it.

    ``link`` is complete when the first block after the range has been read, or when the file has ended.
    """

    def __init__(
        self, file: BinaryIO, name: str, start: int, stop: int, engine: Engine | None = None
    ) -> None:
        self._file = file
        self._name = name
        self._start = start
        self._stop = stop
        self._engine = engine or default_engine()
        self._first: int | None = None
        self._reached: int | None = None
        # The streams that have ended in the range, of which only the first is kept: the checksums of its
        # blocks, and the checksum at its end.
        self._streams: list[tuple[BlockChecksums, int]] = []
        self._open = BlockChecksums()  # checksums of the blocks in the stream that has not ended yet

    @property
    def link(self) -> RangeLink:
        """Start, end and checksums of the range.

        They are later compared with those of the ranges before and after it.
        """
        head, checksum = self._streams[0] if self._streams else (self._open, None)
        tail = self._open if self._streams else BlockChecksums()
        return RangeLink(
            first=self._first, reached=self._reached, head=head, head_checksum=checksum, tail=tail
        )

    def read_texts(self) -> Iterator[tuple[bytes, int, int]]:
        """Decompress the blocks, and yield the text of each block as a whole or in pieces.

        Yields with each text the first byte of its block in the file, and the byte after the block.
        """
        for found in self._decompress_blocks():
            if found.block.offset < self._stop:
                self._add_checksum(found)
            elif self._reached is None:
                self._reached = found.bit
            pieces = decompress_pieces(found.block) if isinstance(found.text, NoText) else (found.text,)
            for text in pieces:
                yield text, found.block.offset, found.block.end

    def _decompress_blocks(self) -> Iterator[_TextBlock]:
        """Decompress the blocks from the first block of the range on, and yield them with their texts.

        Raises InputError for a damaged block.
        """
        # By chance (once in 2^48 bits), the data of a block may contain the magic number that marks the start
        # of a block. There are two cases:
        # 1. The block is cut there. Neither half can be decompressed alone, so the first half is kept
        # (``waiting``) until the second half is read.
        # 2. The range starts inside such a block, between its start and the magic number. What seems to be
        # the first block of the range is only the second half of that block. It is skipped
        # (``may_be_false``), because the reader of the range before reads the whole block.
        waiting: Block | None = None
        may_be_false = self._start > 0
        for block in find_blocks(self._file, self._name, start=self._start, engine=self._engine):
            whole = block if waiting is None else waiting.join_next(block)
            text = decompress_block(self._engine, whole)
            if text is NoText.DAMAGED and waiting is not None and may_be_false:
                # The first block is still damaged when it is joined with the second. It must be the end of a
                # block that starts before the range. Drop it, and try the second block alone.
                may_be_false = False
                whole, waiting = block, None
                text = decompress_block(self._engine, block)
            if text is NoText.DAMAGED:
                may_be_whole = waiting is None and block.stream_checksum is None
                if not may_be_whole and not may_be_false:
                    raise make_damaged_error(self._name, whole.offset)
                waiting, may_be_false = (block if may_be_whole else None), may_be_false and may_be_whole
                continue
            yield _TextBlock(whole, 8 * whole.offset + (waiting or block).shift, text)
            waiting, may_be_false = None, False
        if waiting is not None:
            raise make_damaged_error(self._name, waiting.offset)

    def _add_checksum(self, found: _TextBlock) -> None:
        """Add the checksum of a block in the range to the checksum of its stream.

        Raises InputError if a stream that starts and ends in the range has a wrong checksum.
        """
        if self._first is None:
            self._first = found.bit
        self._open = self._open.add_block(found.block.checksum)
        expected = found.block.stream_checksum
        if expected is None:
            return
        if not self._streams:
            self._streams.append((self._open, expected))
        elif self._open.compute_after(0) != expected:
            raise make_damaged_error(self._name, found.block.offset)
        self._open = BlockChecksums()
