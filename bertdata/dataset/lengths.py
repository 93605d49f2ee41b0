"""Lengths files: for each shard, a small file with the number of tokens of each of its examples.

The file ``lengths/NAME.u16`` belongs to the shard NAME. It contains one unsigned 16-bit little-endian integer
for each example, in the order of the shard. The integer is the number of tokens without padding. With this
file, a reader can group examples by length without decoding the shard.
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
    """The lengths of a shard's examples, which are collected while the shard is written."""

    def __init__(self) -> None:
        self._lengths = array("H")

    def add(self, batch: ExampleBatch) -> None:
        """Append the lengths of the next examples."""
        self._lengths.extend(map(sub, batch.ends, chain((0,), batch.ends)))

    def dump(self) -> bytes:
        """Return the bytes of the lengths file."""
        return _swap_bytes_if_needed(self._lengths).tobytes()


def check_lengths(directory: str, entry: ShardEntry) -> Misfit | None:
    """Compare the lengths file of a shard with the shard's manifest entry and return the first difference.

    Returns None if they match, or if the entry lists no lengths file.
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
    """Read a lengths file and return the number of tokens of each example.

    examples: number of examples of the shard.
    md5: md5 of the lengths file in the manifest.

    Raises ShardError if the file has another size or md5.
    """
    return check_and_parse_lengths(storage.read_bytes(path), path, examples, md5)


def check_and_parse_lengths(data: bytes, path: str, examples: int, md5: str) -> "array[int]":
    """Return the number of tokens of each example from the contents of a lengths file.

    data: contents of the file.
    The other arguments and the errors are those of ``read_lengths``.
    """
    if len(data) != ITEM_BYTES * examples:
        raise ShardError(f"{path}: found {len(data)} bytes, expected {ITEM_BYTES * examples} bytes")
    if compute_md5(data) != md5:
        raise ShardError(f"{path}: found md5 {compute_md5(data)}, expected {md5}")
    return _parse_lengths(data)


def _parse_lengths(data: bytes | bytearray) -> "array[int]":
    return _swap_bytes_if_needed(array("H", bytes(data)))


def _swap_bytes_if_needed(items: "array[int]") -> "array[int]":
    """Swap the bytes of each integer on big-endian machines, because the file is little-endian."""
    if sys.byteorder == "big":
        items = array("H", items)
        items.byteswap()
    return items
