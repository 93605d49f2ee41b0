"""Write and read the framing of TFRecord files, that is, the lengths and checksums around each record.

A record is its length (8 bytes), the masked CRC of the length (4 bytes), the payload, and the masked CRC of
the payload (4 bytes). All numbers are little-endian.
"""

import struct
from collections.abc import Iterator
from typing import IO, Protocol

from bertdata.errors import ShardError
from bertdata.shards.crc32c import compute_masked_crc32c

FRAME_BYTES = 16
_HEADER_BYTES = 12  # the length and its checksum
_LONGEST_RECORD = 1 << 31
_PIECE_BYTES = 1 << 24


class ByteSource(Protocol):
    """Interface of an open file that is read forwards only."""

    def read(self, size: int, /) -> bytes: ...


def frame_payload(payload: bytes) -> bytes:
    """Return the TFRecord record of a payload: the payload with its length and checksums."""
    length = struct.pack("<Q", len(payload))
    return b"".join(
        (
            length,
            struct.pack("<I", compute_masked_crc32c(length)),
            payload,
            struct.pack("<I", compute_masked_crc32c(payload)),
        )
    )


def read_payloads(file: ByteSource, name: str, first: int = 0) -> Iterator[bytes]:
    """Yield the payload of each record, after checking both checksums of the record.

    Raises ShardError, which names the first faulty record.

    name: the file, for errors.
    first: number of the record at the file's current position.
    """
    record = first
    while header := file.read(_HEADER_BYTES):
        where = f"{name}: record {record}"
        if len(header) < _HEADER_BYTES:
            raise make_truncation_error(where)
        length = _parse_length(header, where)
        body = _read_whole(file, length + 4)
        if len(body) < length + 4:
            raise make_truncation_error(where)
        payload, (payload_crc,) = body[:length], struct.unpack("<I", body[length:])
        if payload_crc != compute_masked_crc32c(payload):
            raise ShardError(f"{where}: the checksum of its data does not fit: damaged")
        yield payload
        record += 1


def find_record_ends(block: bytes, limit: int, name: str, first: int = 0) -> list[int]:
    """Return the offset in a block of bytes after each of its records, for at most ``limit`` records.

    The block must begin with a record. Only the lengths of records are read, and their checksums are
    verified. The last record may end beyond the block.

    Raises ShardError, which names the first record with a faulty length.

    name: the file, for errors.
    first: number of the block's first record.
    """
    ends, place = list[int](), 0
    while len(ends) < limit and place + _HEADER_BYTES <= len(block):
        header = block[place : place + _HEADER_BYTES]
        place += _parse_length(header, f"{name}: record {first + len(ends)}") + FRAME_BYTES
        ends.append(place)
    return ends


def _parse_length(header: bytes, where: str) -> int:
    """Return the length of a record's payload.

    header: the first 12 bytes of the record.
    where: the record, for errors. ShardError if its checksum is wrong, or if the record is too long.
    """
    length, length_crc = struct.unpack("<QI", header)
    if length_crc != compute_masked_crc32c(header[:8]):
        raise ShardError(f"{where}: the checksum of its length does not fit: damaged, or not a TFRecord file")
    if length > _LONGEST_RECORD:
        raise ShardError(f"{where}: its length is {length} bytes")
    return int(length)


def _read_whole(file: ByteSource, size: int) -> bytes:
    """Read up to ``size`` bytes, in pieces.

    A damaged header may state any size. Reading in pieces never needs more memory than the file has bytes.
    """
    pieces = []
    while size > 0 and (piece := file.read(min(size, _PIECE_BYTES))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def count_records(file: IO[bytes], name: str) -> int:
    """Count the records of a seekable file by their headers only. The file's position is restored."""
    return sum(1 for _ in find_record_starts(file, name)) - 1


def find_record_starts(file: IO[bytes], name: str) -> Iterator[int]:
    """Yield the byte offset of each record of a seekable file, and finally the file's size.

    The file's position is restored when the iterator ends.
    """
    before, place, count = file.tell(), 0, 0
    end = file.seek(0, 2)
    try:
        yield place
        while place < end:
            file.seek(place)
            header = file.read(8)
            # Skip the payload. Its checksum is not verified here.
            place += int.from_bytes(header, "little") + FRAME_BYTES
            count += 1
            if place > end or len(header) < 8:
                raise make_truncation_error(f"{name}: record {count - 1}")
            yield place
    finally:
        file.seek(before)


class FrameCounter:
    """Counts the records of a TFRecord stream that arrives in blocks of any size. Checksums are not
    verified.
    """

    def __init__(self) -> None:
        self.count = 0
        self._header = b""
        self._left = 0  # number of bytes of the current record that are still to come

    def count_record(self, size: int) -> None:
        """Count a record whose header was read.

        Subclasses can extend this method to store more about the record.

        size: number of bytes of the record, with length and checksums.
        """
        self.count += 1

    def feed(self, block: bytes) -> None:
        """Receive the next bytes of the stream, and count the records that begin in them."""
        # A block can end anywhere. ``_header`` holds the first bytes of a length if the block ended within
        # it. ``_left`` is the number of bytes of the current record that are still to come.
        place = 0
        while place < len(block):
            if self._left:
                step = min(self._left, len(block) - place)
                self._left -= step
            else:
                step = 8 - len(self._header)
                self._header += block[place : place + step]
                if len(self._header) == 8:
                    size = int.from_bytes(self._header, "little") + FRAME_BYTES
                    self._left = size - 8
                    self._header = b""
                    self.count_record(size)
            place += step


def make_truncation_error(where: str) -> ShardError:
    return ShardError(f"{where}: the file ends inside this record: truncated")
