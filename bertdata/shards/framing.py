"""TFRecord frames: length, its checksum, payload, its checksum, all little-endian."""

import struct
from collections.abc import Iterator
from typing import IO, Protocol

from bertdata.errors import ShardError
from bertdata.shards.crc32c import masked_crc32c

FRAME_BYTES = 16
_LONGEST_RECORD = 1 << 31
_PIECE_BYTES = 1 << 24


class ByteSource(Protocol):
    """Bytes that are read in order."""

    def read(self, size: int, /) -> bytes: ...


def frame(payload: bytes) -> bytes:
    """The payload framed as one record."""
    length = struct.pack("<Q", len(payload))
    return b"".join(
        (
            length,
            struct.pack("<I", masked_crc32c(length)),
            payload,
            struct.pack("<I", masked_crc32c(payload)),
        )
    )


def read_payloads(file: ByteSource, name: str, first: int = 0) -> Iterator[bytes]:
    """The payloads of all records. ShardError names the file and the first record at fault.

    first: the number of the record at which the file stands.
    """
    record = first
    while header := file.read(12):
        where = f"{name}: record {record}"
        if len(header) < 12:
            raise truncated(where)
        length, length_crc = struct.unpack("<QI", header)
        if length_crc != masked_crc32c(header[:8]):
            raise ShardError(
                f"{where}: the checksum of its length does not fit: damaged, or not a TFRecord file"
            )
        if length > _LONGEST_RECORD:
            raise ShardError(f"{where}: its length is {length} bytes")
        body = _read_whole(file, length + 4)
        if len(body) < length + 4:
            raise truncated(where)
        payload, (payload_crc,) = body[:length], struct.unpack("<I", body[length:])
        if payload_crc != masked_crc32c(payload):
            raise ShardError(f"{where}: the checksum of its data does not fit: damaged")
        yield payload
        record += 1


def _read_whole(file: ByteSource, size: int) -> bytes:
    """Up to ``size`` bytes. Memory is taken for those that the file has, whatever its header claims."""
    pieces = []
    while size > 0 and (piece := file.read(min(size, _PIECE_BYTES))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def count_records(file: IO[bytes], name: str) -> int:
    """Number of records of a seekable file, from the frames' headers alone. The file stays where it is."""
    return sum(1 for _ in record_starts(file, name)) - 1


def record_starts(file: IO[bytes], name: str) -> Iterator[int]:
    """The start of each record of a seekable file, and at last its end. The file stays where it is."""
    before, place, count = file.tell(), 0, 0
    end = file.seek(0, 2)
    try:
        yield place
        while place < end:
            file.seek(place)
            header = file.read(8)
            place += int.from_bytes(header, "little") + FRAME_BYTES
            count += 1
            if place > end or len(header) < 8:
                raise truncated(f"{name}: record {count - 1}")
            yield place
    finally:
        file.seek(before)


class FrameCounter:
    """Counts the records of a sound file by their lengths, from its bytes as they come."""

    def __init__(self) -> None:
        self.count = 0
        self._header = b""
        self._left = 0  # bytes of the open record that follow its length

    def open_record(self, size: int) -> None:
        """A record of so many bytes, frame included, begins."""
        self.count += 1

    def feed(self, block: bytes) -> None:
        """Take the file's next bytes."""
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
                    self.open_record(size)
            place += step


def truncated(where: str) -> ShardError:
    return ShardError(f"{where}: the file ends inside this record: truncated")
