"""Spill files of examples on their way to packed rows.

A file holds a run of examples, sorted by the bucket of their row: a piece for each bucket, some of them
empty, then where each piece starts and where the last one ends (uint64). A piece holds the number of its
examples and the bytes of an id (uint32 each), the keys of the examples (uint64: row in the bucket << 16 |
place in the row), then the batch's columns, those that hold ends first. All is little-endian.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from bertdata.errors import MissingInputError
from bertdata.examples.columns import Array, cut, join
from bertdata.io import storage
from bertdata.records import Column, ExampleBatch
from bertdata.shards.protocol import Sink

PLACE_BITS = 16
_TYPES = {"uint8": "<u1", "uint16": "<u2", "uint32": "<u4"}
_BLOCK_BYTES = 1 << 20


class SpillEntry(NamedTuple):
    """A whole spill file as a later run looks for it; the name is relative to the dataset's directory.

    A CRC-32 finds what a crash or a disk does to a file of ours, in a quarter of an md5's time.
    """

    name: str
    bytes: int
    crc32: int

    def fits(self, directory: str) -> bool:
        """True if the directory's file of that name has these bytes."""
        path, found = storage.join(directory, self.name), 0
        try:
            if storage.size(path) != self.bytes:
                return False
            with storage.open_input(path) as file:
                while block := file.read(_BLOCK_BYTES):
                    found = zlib.crc32(block, found)
        except MissingInputError:
            return False
        return found == self.crc32


class SpillSink:
    """Passes bytes on to a file, with their number and checksum."""

    def __init__(self, file: Sink) -> None:
        self._file = file
        self._bytes = self._crc32 = 0

    def write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._crc32 = zlib.crc32(data, self._crc32)
        self._bytes += memoryview(data).nbytes

    def entry(self, name: str) -> SpillEntry:
        """The entry of the file that was written."""
        return SpillEntry(name=name, bytes=self._bytes, crc32=self._crc32)


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Examples of one bucket, each with its key."""

    keys: Array
    examples: ExampleBatch


def write_run(keys: Array, examples: ExampleBatch, counts: Array, sink: Sink) -> None:
    """Write examples that are sorted by bucket; counts: examples of each bucket."""
    starts, first = [0], 0
    for count in counts.tolist():
        size = 0
        if count:
            piece = cut(examples, first, first + count)
            for column in _columns(keys[first : first + count], piece):
                size += column.nbytes
                sink.write(column.view(np.uint8).data)
        starts.append(starts[-1] + size)
        first += count
    sink.write(np.array(starts, "<u8").tobytes())


def _columns(keys: Array, examples: ExampleBatch) -> list[Array]:
    """The arrays of a piece, in their order."""
    width = next(getattr(examples, item.name).itemsize for item in examples.columns() if item.item == "id")
    values = [getattr(examples, item.name) for item in _in_order(type(examples))]
    types = [_type(item, width) for item in _in_order(type(examples))]
    head = np.array([len(keys), width], "<u4")
    found = [value.astype(kind, copy=False) for value, kind in zip(values, types, strict=True)]
    return [head, keys.astype("<u8", copy=False), *map(np.ascontiguousarray, found)]


def _in_order(kind: type[ExampleBatch]) -> list[Column]:
    """The columns, those first that say how many items others have."""
    ends = kind.ragged()
    return sorted(kind.columns(), key=lambda item: item.name not in ends)


def _type(item: Column, id_bytes: int) -> str:
    return f"<u{id_bytes}" if item.item == "id" else _TYPES[item.item]


def read_piece(path: str, bucket: int, buckets: int, kind: type[ExampleBatch]) -> Piece | None:
    """The examples of a bucket in one file; None where it has none."""
    with storage.open_input(path) as file:
        file.seek(-8 * (buckets + 1 - bucket), 2)
        start, stop = np.frombuffer(file.read(16), "<u8").tolist()
        return _parse(_read_at(file, start, stop - start), kind) if stop > start else None


def _read_at(file: BinaryIO, start: int, size: int) -> bytes:
    file.seek(start)
    return file.read(size)


def _parse(data: bytes, kind: type[ExampleBatch]) -> Piece:
    count, width = np.frombuffer(data, "<u4", 2).tolist()
    keys, place = np.frombuffer(data, "<u8", count, 8), 8 + 8 * count
    values: dict[str, Any] = {}
    for item in _in_order(kind):
        items = count if item.ends is None else int(values[item.ends][-1])
        column = np.frombuffer(data, _type(item, width), items, place)
        place += column.nbytes
        values[item.name] = column
    assert place == len(data), (place, len(data))
    return Piece(keys, kind(**values))


def join_pieces(pieces: Sequence[Piece]) -> Piece:
    """All examples of some pieces."""
    return Piece(np.concatenate([piece.keys for piece in pieces]), join([piece.examples for piece in pieces]))
