"""The text of bzip2 files, decompressed block by block on several workers.

Twin of _native/wiki/bzip2: Python's bz2, which also decides on every block that the kernel refuses.
"""

from collections.abc import Iterator
from enum import Enum
from functools import partial
from typing import BinaryIO

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.errors import InputError
from bertdata.wiki.dump.bzip2_blocks import END_MAGIC, Block, find_blocks
from bertdata.wiki.worker_pool import WorkerPool

_MOST_BYTES = 4 << 20
"""Text that a worker makes of one block. Prose is 0.9 MB; equal bytes can be 46 MB, read in pieces."""

_PIECE_BYTES = 1 << 20


class NoText(Enum):
    """Reasons why there is no text of a block."""

    DAMAGED = "the bits are no whole block, or their checksum is wrong"
    TOO_LONG = "the text is to be read in pieces"


def read_bzip2(
    file: BinaryIO, name: str, pool: WorkerPool, engine: Engine | None = None
) -> Iterator[tuple[bytes, int]]:
    """The decompressed text, a block or a piece of it at a time, and the offset in the file it reaches to.

    Every checksum is compared. InputError for a truncated or damaged file, with the offset.
    """
    combined = 0
    waiting: Block | None = None
    engine = engine or default_engine()
    blocks = find_blocks(file, name, engine=engine)
    for block, text in pool.in_order(partial(decompress_block, engine), blocks):
        if waiting is not None:
            block = waiting.joined(block)
            text = decompress_block(engine, block)
        # By chance (once in 2^48 bits) a block's data hold the magic number: its halves belong together.
        if text is NoText.DAMAGED:
            if waiting is not None or block.stream_checksum is not None:
                raise _damaged(name, block)
            waiting = block
            continue
        waiting = None
        combined = ((combined << 1 | combined >> 31) & 0xFFFFFFFF) ^ block.checksum
        if block.stream_checksum is not None:
            if combined != block.stream_checksum:
                raise _damaged(name, block)
            combined = 0
        for piece in text_pieces(block) if isinstance(text, NoText) else (text,):
            yield piece, block.end
    if waiting is not None:
        raise _damaged(name, waiting)


def _damaged(name: str, block: Block) -> InputError:
    return InputError(
        f"{name}: byte {block.offset}: the bzip2 block that starts here is damaged; "
        "compare the file's md5 with the published one and download it again"
    )


def decompress_block(engine: Engine, block: Block) -> bytes | NoText:
    """The block's text, its checksum compared."""
    if block.length < 80:
        return NoText.DAMAGED
    if use_native(engine):
        first = block.shift
        try:
            text = kernels.decompress_bzip2_block(block.data, first, first + block.length, _MOST_BYTES)
        except OverflowError:
            text = None  # its checksum is not yet compared
        if text is not None:
            return bytes(text)
    return _decompress(block)


def _decompress(block: Block) -> bytes | NoText:
    """The text from Python's bz2. One that is too long is read to its end, for its checksum."""
    pieces: list[bytes] = []
    size = 0
    try:
        for piece in text_pieces(block):
            size += len(piece)
            if size <= _MOST_BYTES:
                pieces.append(piece)
    except (OSError, EOFError):
        return NoText.DAMAGED
    return b"".join(pieces) if size <= _MOST_BYTES else NoText.TOO_LONG


def text_pieces(block: Block) -> Iterator[bytes]:
    """The block's text in pieces. OSError for damage, EOFError where the block is not whole.

    That another stream lies within the block is found behind the last piece.
    """
    import bz2  # slow to import, and seldom needed where the kernels are built

    data = _stream_of(block)
    decompressor = bz2.BZ2Decompressor()
    while not decompressor.eof:
        piece = decompressor.decompress(data, _PIECE_BYTES)
        data = b""
        if piece:
            yield piece
        elif decompressor.needs_input:
            raise EOFError
    if decompressor.unused_data:  # an end mark within: where a later stream's first magic number is damaged
        raise OSError("the block ends before its last bit")


def _stream_of(block: Block) -> bytes:
    """A stream of this block alone. Its checksum over all blocks is the block's own."""
    value = (int.from_bytes(b"BZh9", "big") << block.length | block.bits) << 80
    value |= END_MAGIC << 32 | block.checksum
    length = 32 + block.length + 80
    return (value << (-length % 8)).to_bytes((length + 7) // 8, "big")
