"""Lengths files: the number of tokens of every example, in a small file for each shard.

The file ``lengths/NAME.u16`` of the shard NAME holds an unsigned 16-bit little-endian integer per example, in
the shard's order: the example's number of tokens without padding. A reader can therefore distribute examples
by length without decoding shards.
"""

import sys
from array import array
from itertools import chain
from operator import sub

from bertdata.dataset.manifest import ShardEntry, make_lengths_name
from bertdata.errors import ShardError
from bertdata.io import storage
from bertdata.io.file_check import Misfit, check_file, compute_md5
from bertdata.records import ExampleBatch

ITEM_BYTES = 2


class ShardLengths:
    """The lengths of a shard's examples, collected while the shard is written."""

    def __init__(self) -> None:
        self._lengths = array("H")

    def add(self, batch: ExampleBatch) -> None:
        """Append the lengths of the next examples."""
        self._lengths.extend(map(sub, batch.ends, chain((0,), batch.ends)))

    def dump(self) -> bytes:
        """Return the bytes of the lengths file."""
        return _convert_byte_order(self._lengths).tobytes()


def check_lengths(directory: str, entry: ShardEntry) -> Misfit | None:
    """Compare a shard's lengths file with the shard's manifest entry and return the first difference.

    Returns None if the file matches the entry, or if the entry lists no lengths file.
    """
    if entry.lengths_md5 is None:
        return None
    path = storage.join(directory, make_lengths_name(entry.name))
    found = bytearray()
    misfit = check_file(path, ITEM_BYTES * entry.examples, entry.lengths_md5, also=found.extend)
    if misfit is not None:
        return misfit
    tokens = sum(_parse_lengths(found))
    if tokens == entry.tokens:
        return None
    return Misfit(status="wrong lengths", found=f"{tokens} tokens", expected=f"{entry.tokens} tokens")


def read_lengths(path: str, examples: int, md5: str) -> "array[int]":
    """Return the lengths of a shard's examples.

    Raises ShardError if the file differs from the expected size or md5.
    """
    data = storage.read_bytes(path)
    if len(data) != ITEM_BYTES * examples:
        raise ShardError(f"{path}: found {len(data)} bytes, expected {ITEM_BYTES * examples} bytes")
    if compute_md5(data) != md5:
        raise ShardError(f"{path}: found md5 {compute_md5(data)}, expected {md5}")
    return _parse_lengths(data)


def _parse_lengths(data: bytes | bytearray) -> "array[int]":
    return _convert_byte_order(array("H", bytes(data)))


def _convert_byte_order(items: "array[int]") -> "array[int]":
    """Convert between the machine's byte order and the file's."""
    if sys.byteorder == "big":
        items = array("H", items)
        items.byteswap()
    return items
