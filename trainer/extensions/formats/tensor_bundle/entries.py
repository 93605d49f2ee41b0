"""The values of an index: BundleHeaderProto under the empty key, BundleEntryProto under each name."""

import math
from dataclasses import dataclass

from trainer.extensions.formats.tensor_bundle.wire import (
    WireError,
    bytes_field,
    expect_bytes,
    expect_int,
    fixed32_field,
    number_field,
    read_fields,
)

_MOST_DIMENSIONS = 254  # TensorFlow's own limit
_LARGEST = 1 << 62  # of the product of the sizes but zeros, which torch holds in 64 bits

FLOAT, INT64, STRING = 1, 9, 7
"""Numbers of TensorFlow's types that are written."""


@dataclass(frozen=True, slots=True)
class BundleEntry:
    """A tensor's type, shape, place in the data file of its shard, and masked CRC-32C."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc: int
    sliced: bool = False  # its values lie in slices under other keys (a partitioned variable)

    @classmethod
    def parse(cls, data: bytes) -> "BundleEntry":
        numbers = dict.fromkeys((1, 3, 4, 5, 6), 0)
        shape: tuple[int, ...] = ()
        sliced = False
        for number, value in read_fields(data):
            if number in numbers:
                numbers[number] = expect_int(value)
            elif number == 2:
                shape = _parse_shape(expect_bytes(value))
            sliced = sliced or number == 7
        if min(numbers.values()) < 0 or min(shape, default=0) < 0:
            raise WireError("an entry with a negative number")
        if len(shape) > _MOST_DIMENSIONS or math.prod(size or 1 for size in shape) > _LARGEST:
            raise WireError("a shape that no tensor has")
        dtype, shard, offset, size, crc = numbers.values()
        return cls(dtype, shape, shard, offset, size, crc, sliced)

    def encode(self) -> bytes:
        shape = b"".join(bytes_field(2, number_field(1, size)) for size in self.shape)
        return b"".join(
            (
                number_field(1, self.dtype),
                bytes_field(2, shape),
                number_field(3, self.shard),
                number_field(4, self.offset),
                number_field(5, self.size),
                fixed32_field(6, self.crc),
            )
        )


def _parse_shape(data: bytes) -> tuple[int, ...]:
    """The sizes of a TensorShapeProto."""
    sizes = []
    for number, dimension in read_fields(data):
        if number == 2:
            found = [expect_int(value) for inner, value in read_fields(expect_bytes(dimension)) if inner == 1]
            sizes.append(found[-1] if found else 0)
    return tuple(sizes)


def parse_header(data: bytes) -> tuple[int, bool]:
    """(number of data files, True if their numbers are little-endian)."""
    numbers = {1: 0, 2: 0}
    for number, value in read_fields(data):
        if number in numbers:
            numbers[number] = expect_int(value)
    return numbers[1], numbers[2] == 0


def encode_header(shards: int) -> bytes:
    """The header of little-endian data files, of version 1."""
    return number_field(1, shards) + bytes_field(3, number_field(1, 1))
