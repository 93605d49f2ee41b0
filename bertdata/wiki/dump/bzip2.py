"""Decompresses bzip2 files with several workers, each of which decompresses a block at a time.

The C++ version of this code is in _native/wiki/bzip2. If it refuses a block, Python's bz2 tries the block
again and decides whether it is damaged.
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
"""Largest text of a block, in bytes, that a worker returns as a whole.

A block of prose has 0.9 MB of text. A block that repeats a single byte can have 46 MB. Such a text is not
returned, and the block is decompressed again in pieces.
"""

_PIECE_BYTES = 1 << 20


class NoText(Enum):
    """Reason why a worker returned no text for a compressed block."""

    DAMAGED = "the bits are no whole block, or their checksum is wrong"
    TOO_LONG = "the text is to be read in pieces"


def read_bzip2(
    file: BinaryIO, name: str, pool: WorkerPool, engine: Engine | None = None
) -> Iterator[tuple[bytes, int]]:
    """Decompress a bzip2 file. Yields each piece of text with the number of bytes of the file read so far.

    All checksums are verified.

    name: path of the file, for error messages.

    Raises InputError with the offset if the file is truncated or damaged.
    """
    combined = 0
    waiting: Block | None = None
    engine = engine or default_engine()
    blocks = find_blocks(file, name, engine=engine)
    for block, text in pool.in_order(partial(decompress_block, engine), blocks):
        # By chance (once in 2^48 bits), the data of a block may contain the magic number that marks the start
        # of a block. The block is then cut there, and neither half can be decompressed alone. A block that
        # fails is therefore not an error yet. It is kept, joined with the next block, and tried again.
        if waiting is not None:
            block = waiting.join_next(block)
            text = decompress_block(engine, block)
        if text is NoText.DAMAGED:
            if waiting is not None or block.stream_checksum is not None:
                raise _make_damaged_error(name, block)
            waiting = block
            continue
        waiting = None
        combined = ((combined << 1 | combined >> 31) & 0xFFFFFFFF) ^ block.checksum
        if block.stream_checksum is not None:
            if combined != block.stream_checksum:
                raise _make_damaged_error(name, block)
            combined = 0
        for piece in decompress_pieces(block) if isinstance(text, NoText) else (text,):
            yield piece, block.end
    if waiting is not None:
        raise _make_damaged_error(name, waiting)


def _make_damaged_error(name: str, block: Block) -> InputError:
    """Make the error for a block that cannot be decompressed.

    name: path of the file.
    """
    return InputError(
        f"{name}: byte {block.offset}: the bzip2 block that starts here is damaged; "
        "compare the file's md5 with the published one and download it again"
    )


def decompress_block(engine: Engine, block: Block) -> bytes | NoText:
    """Decompress a block, and verify its checksum. Returns the text, or the reason why there is none."""
    if block.length < 80:
        return NoText.DAMAGED
    if use_native(engine):
        first = block.shift
        try:
            text = kernels.decompress_bzip2_block(block.data, first, first + block.length, _MOST_BYTES)
        except OverflowError:
            # The kernel stopped because the text is too long, so it has not verified the checksum.
            text = None
        if text is not None:
            return bytes(text)
    return _decompress(block)


def _decompress(block: Block) -> bytes | NoText:
    """Decompress a block with Python's bz2. Returns the text, or the reason why there is none.

    If the text is too long, it is still read to the end, so that its checksum is verified.
    """
    pieces: list[bytes] = []
    size = 0
    try:
        for piece in decompress_pieces(block):
            size += len(piece)
            if size <= _MOST_BYTES:
                pieces.append(piece)
    except (OSError, EOFError):
        return NoText.DAMAGED
    return b"".join(pieces) if size <= _MOST_BYTES else NoText.TOO_LONG


def decompress_pieces(block: Block) -> Iterator[bytes]:
    """Decompress a block, and yield its text in pieces.

    Raises OSError if the block is damaged, and EOFError if it is incomplete. If the block reaches into
    another bzip2 stream, the OSError comes only after the last piece.
    """
    import bz2  # bz2 is slow to import, and seldom needed if the kernels are built.

    data = _make_stream(block)
    decompressor = bz2.BZ2Decompressor()
    while not decompressor.eof:
        piece = decompressor.decompress(data, _PIECE_BYTES)
        data = b""
        if piece:
            yield piece
        elif decompressor.needs_input:
            raise EOFError
    # Bytes are left after the end of the stream. The start of the next stream must be damaged, so that it was
    # not found and ``block`` reaches into that stream.
    if decompressor.unused_data:
        raise OSError("the block ends before its last bit")


def _make_stream(block: Block) -> bytes:
    """Return a complete bzip2 stream whose only block is this block.

    The checksum of such a stream equals the checksum of the block.
    """
    # The parts of the stream are the header "BZh9" (32 bits), the block's bits, the end mark (48 bits), the
    # checksum (32 bits), and padding to whole bytes.
    value = (int.from_bytes(b"BZh9", "big") << block.length | block.bits) << 80
    value |= END_MAGIC << 32 | block.checksum
    length = 32 + block.length + 80
    return (value << (-length % 8)).to_bytes((length + 7) // 8, "big")
