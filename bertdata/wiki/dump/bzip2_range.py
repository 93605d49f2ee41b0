"""The blocks of a bzip2 file that begin in a range of its bytes, and then those behind it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from bertdata._native import Engine, default_engine
from bertdata.wiki.dump.bzip2 import NoText, decompress_block, text_pieces
from bertdata.wiki.dump.bzip2_blocks import Block, find_blocks
from bertdata.wiki.ranges.links import BlockChecksums, RangeLink, damaged


@dataclass(frozen=True, slots=True)
class _TextBlock:
    """A block, its first bit in the file, and its text. One that is too long is yet to be read."""

    block: Block
    bit: int
    text: bytes | NoText


class Bzip2Range:
    """Reads the blocks that begin in bytes ``start`` to ``stop`` of a file, and on behind them.

    ``link`` is complete once a block that begins behind the range was read, or all are.
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
        self._streams: list[tuple[BlockChecksums, int]] = []  # the first that ends here
        self._open = BlockChecksums()

    @property
    def link(self) -> RangeLink:
        """Facts that the neighbours must fit."""
        head, checksum = self._streams[0] if self._streams else (self._open, None)
        tail = self._open if self._streams else BlockChecksums()
        return RangeLink(
            first=self._first, reached=self._reached, head=head, head_checksum=checksum, tail=tail
        )

    def texts(self) -> Iterator[tuple[bytes, int, int]]:
        """The text of each block, whole or in pieces, the byte that it begins in, and the byte behind it."""
        for found in self._decompressed():
            if found.block.offset < self._stop:
                self._add(found)
            elif self._reached is None:
                self._reached = found.bit
            pieces = text_pieces(found.block) if isinstance(found.text, NoText) else (found.text,)
            for text in pieces:
                yield text, found.block.offset, found.block.end

    def _decompressed(self) -> Iterator[_TextBlock]:
        """All blocks from the range's first one on. InputError for one that is damaged.

        By chance (once in 2^48 bits) a block's data hold the magic number: the halves of such a block
        belong together, and a range that begins within it has a false first block.
        """
        waiting: Block | None = None
        may_be_false = self._start > 0
        for block in find_blocks(self._file, self._name, start=self._start, engine=self._engine):
            whole = block if waiting is None else waiting.joined(block)
            text = decompress_block(self._engine, whole)
            if text is NoText.DAMAGED and waiting is not None and may_be_false:
                may_be_false = False
                whole, waiting = block, None
                text = decompress_block(self._engine, block)
            if text is NoText.DAMAGED:
                may_be_whole = waiting is None and block.stream_checksum is None
                if not may_be_whole and not may_be_false:
                    raise damaged(self._name, whole.offset)
                waiting, may_be_false = (block if may_be_whole else None), may_be_false and may_be_whole
                continue
            yield _TextBlock(whole, 8 * whole.offset + (waiting or block).shift, text)
            waiting, may_be_false = None, False
        if waiting is not None:
            raise damaged(self._name, waiting.offset)

    def _add(self, found: _TextBlock) -> None:
        """Take a block of the range into account. InputError where a whole stream does not fit."""
        if self._first is None:
            self._first = found.bit
        self._open = self._open.with_block(found.block.checksum)
        expected = found.block.stream_checksum
        if expected is None:
            return
        if not self._streams:
            self._streams.append((self._open, expected))
        elif self._open.behind(0) != expected:
            raise damaged(self._name, found.block.offset)
        self._open = BlockChecksums()
