"""TensorFlow's sorted table (LevelDB's format): blocks with prefix-compressed keys, an index block, a footer.

block      entries, restart points, compression type (1 byte), masked CRC-32C (4 bytes)
entry      size shared with the previous key, size of the key's rest, size of the value; key; value
footer     (offset, size) of metaindex block and index block, zeros up to 40 bytes, magic number
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from bertdata.errors import MissingExtraError, install_extra
from bertdata.shards.crc32c import compute_masked_checksum
from bertdata.shards.example_proto import encode_varint
from trainer.checkpoints.formats.tensor_bundle.wire import WireError, read_bytes, read_varint, read_varints
from trainer.errors import CheckpointError

_FOOTER_BYTES = 48
_TRAILER_BYTES = 5
_MAGIC = 0xDB4775248B80FB57
_PLAIN, _SNAPPY = 0, 1
_BLOCK_BYTES = 1 << 18
_ENTRIES_A_RESTART = 16
_SNAPPY_RATIO = 22
"""Largest ratio of decompressed to compressed bytes in Snappy's format, where 3 bytes give at most 64. A
block that claims a larger ratio is damaged.
"""

_KEY_RATIO = 64
"""Largest ratio of the bytes of all keys to the bytes of the file. Keys are stored compressed. In real files,
each entry has at least 15 more bytes, so this ratio is not reached.
"""


@dataclass(slots=True)
class _KeyLimits:
    """Limits for the keys that are still to be read.

    Keys must be in ascending order over the whole table. A key is stored as its difference from the previous
    key. Without a limit, a small damaged file could claim terabytes of keys.
    left: number of bytes that the remaining keys may have together.
    last: the key that was read last, or None. The next key must be greater.
    """

    left: int
    last: bytes | None = None


def read_table(data: bytes, name: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield (key, value) of each entry, in order. CheckpointError names the file if it is damaged."""
    if len(data) < _FOOTER_BYTES or struct.unpack("<Q", data[-8:])[0] != _MAGIC:
        raise CheckpointError(f"{name}: no TensorFlow index, or a truncated one: its last 8 bytes differ")
    try:
        footer = data[-_FOOTER_BYTES:-8]
        places, _ = read_varints(footer, 0, 4)
        # A varint (a number of variable length) can be written with more bytes than needed. The footer must
        # have the shortest form, so that a changed byte in it is noticed.
        shortest = b"".join(map(encode_varint, places))
        if footer != shortest.ljust(len(footer), b"\0"):
            raise WireError("its footer is damaged")
        blocks, most, end = data[:-_FOOTER_BYTES], _KEY_RATIO * len(data), 0
        # The metaindex is empty in these files. It is only checked.
        for _ in _read_entries(_read_block(blocks, name, *places[:2]), _KeyLimits(most)):
            pass
        keys = _KeyLimits(most)
        for _, value in _read_entries(_read_block(blocks, name, *places[2:]), _KeyLimits(most)):
            (offset, size), _ = read_varints(value, 0, 2)
            if offset < end:
                raise WireError("its blocks overlap")
            end = offset + size
            yield from _read_entries(_read_block(blocks, name, offset, size), keys)
    except WireError as error:
        raise CheckpointError(f"{name}: is damaged: {error}") from None


def _read_block(blocks: bytes, name: str, offset: int, size: int) -> bytes:
    """Return the entries and restart points of a block, decompressed. WireError if its checksum is wrong."""
    block = read_bytes(blocks, offset, size + _TRAILER_BYTES)
    body, kind = block[:size], block[size]
    if compute_masked_checksum(block[:-4]) != struct.unpack("<I", block[-4:])[0]:
        raise WireError(f"the checksum of the block at byte {offset} does not fit")
    if kind not in (_PLAIN, _SNAPPY):
        raise WireError(f"the block at byte {offset} has compression {kind}, expected 0 or 1")
    return body if kind == _PLAIN else _decompress(body, name)


def _decompress(body: bytes, name: str) -> bytes:
    """Return a block decompressed with Snappy."""
    try:
        import cramjam
    except ImportError:
        raise MissingExtraError(
            f"{name}: is compressed with Snappy, and cramjam is not installed; {install_extra('train')}"
        ) from None
    if (claimed := read_varint(body, 0)[0]) > _SNAPPY_RATIO * len(body):
        raise WireError(f"a compressed block of {len(body)} bytes that claims {claimed}")
    try:
        return bytes(cramjam.snappy.decompress_raw(body))
    except cramjam.DecompressionError as error:
        raise WireError(f"a block that Snappy cannot decompress ({error})") from None


def _read_entries(block: bytes, keys: _KeyLimits) -> Iterator[tuple[bytes, bytes]]:
    """Yield (key, value) of each entry of a block."""
    # A block ends with the number of restart points, 4 bytes, preceded by their offsets, 4 bytes each. The
    # offsets are for binary search and not needed here.
    restarts = struct.unpack("<I", read_bytes(block, len(block) - 4, 4))[0] if len(block) >= 4 else None
    if restarts is None or (end := len(block) - 4 - 4 * restarts) < 0:
        raise WireError("a block without its restart points")
    key, place = b"", 0
    while place < end:
        (shared, rest, size), place = read_varints(block, place, 3)
        if shared > len(key) or place + rest + size > end:
            raise WireError("an entry that is longer than its block")
        # A key begins with ``shared`` bytes of the previous key, followed by ``rest`` bytes of its own. For
        # example, shared 4 and the bytes "/pooler" after the key "bert" give the key "bert/pooler".
        keys.left -= shared + rest
        if keys.left < 0:
            raise WireError(f"its keys have more than {_KEY_RATIO} bytes for each byte of the file")
        key = key[:shared] + block[place : place + rest]
        # if the index lists a block twice, the keys are not in ascending order either
        if keys.last is not None and key <= keys.last:
            raise WireError("its keys are not in order")
        keys.last = key
        place += rest
        yield key, block[place : place + size]
        place += size


def write_table(file: BinaryIO, entries: Iterable[tuple[bytes, bytes]]) -> None:
    """Write a table without compression. The keys must be sorted and unique."""
    offset = 0

    def write_block(block: _BlockBuilder) -> bytes:
        """Write a block. Return the block's offset and size in the encoding that the index block and the
        footer use.
        """
        nonlocal offset
        body = block.finish()
        place = encode_varint(offset) + encode_varint(len(body))
        file.write(body + bytes([_PLAIN]))
        file.write(struct.pack("<I", compute_masked_checksum(body + bytes([_PLAIN]))))
        offset += len(body) + _TRAILER_BYTES
        return place

    index, block = _BlockBuilder(), _BlockBuilder()
    for key, value in entries:
        if len(block) >= _BLOCK_BYTES:
            index.add(block.last, write_block(block))
            block = _BlockBuilder()
        block.add(key, value)
    index.add(block.last, write_block(block))
    footer = write_block(_BlockBuilder()) + write_block(index)
    file.write(footer.ljust(_FOOTER_BYTES - 8, b"\0") + struct.pack("<Q", _MAGIC))


class _BlockBuilder:
    """A growing block. Every 16th key is a restart point, written without prefix compression.

    last: the last key added.
    """

    def __init__(self) -> None:
        self._data = bytearray()
        self._restarts: list[int] = []
        self._count = 0
        self.last = b""

    def __len__(self) -> int:
        return len(self._data)

    def add(self, key: bytes, value: bytes) -> None:
        """Append an entry."""
        shared = 0
        if self._count % _ENTRIES_A_RESTART == 0:
            self._restarts.append(len(self._data))
        else:
            while shared < min(len(key), len(self.last)) and key[shared] == self.last[shared]:
                shared += 1
        self._data += (
            encode_varint(shared)
            + encode_varint(len(key) - shared)
            + encode_varint(len(value))
            + key[shared:]
            + value
        )
        self.last = key
        self._count += 1

    def finish(self) -> bytes:
        """Return the entries with their restart points."""
        restarts = self._restarts or [0]
        return bytes(self._data) + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))
