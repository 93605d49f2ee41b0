"""Sidecars of a dataset: the number of tokens of every example, in one file beside each shard.

The file ``lengths/NAME.u16`` of shard NAME holds 2 bytes an example, in the shard's order: an unsigned
little-endian integer, the example's real (not padded) tokens. So a reader can divide examples by their
tokens without decoding a shard.
"""

import sys
from array import array
from itertools import chain
from operator import sub

from bertdata.dataset.manifest import ShardEntry, lengths_name
from bertdata.errors import ShardError
from bertdata.io import storage
from bertdata.io.file_check import Misfit, check_file, md5_of
from bertdata.records import ExampleBatch

ITEM_BYTES = 2


class ShardLengths:
    """The lengths of a shard's examples, collected while it is written."""

    def __init__(self) -> None:
        self._lengths = array("H")

    def add(self, batch: ExampleBatch) -> None:
        """Add the lengths of the shard's next examples."""
        self._lengths.extend(map(sub, batch.ends, chain((0,), batch.ends)))

    def dump(self) -> bytes:
        """The bytes of the file."""
        return _little_endian(self._lengths).tobytes()


def check_lengths(directory: str, entry: ShardEntry) -> Misfit | None:
    """The first difference between a shard's lengths and its entry. None where they fit or are not listed."""
    if entry.lengths_md5 is None:
        return None
    path = storage.join(directory, lengths_name(entry.name))
    found = bytearray()
    misfit = check_file(path, ITEM_BYTES * entry.examples, entry.lengths_md5, also=found.extend)
    if misfit is not None:
        return misfit
    tokens = sum(_parse(found))
    if tokens == entry.tokens:
        return None
    return Misfit(status="wrong lengths", found=f"{tokens} tokens", expected=f"{entry.tokens} tokens")


def read_lengths(path: str, examples: int, md5: str) -> "array[int]":
    """The lengths of a shard's examples. ShardError where the file is not the one that is listed."""
    data = storage.read_bytes(path)
    if len(data) != ITEM_BYTES * examples:
        raise ShardError(f"{path}: found {len(data)} bytes, expected {ITEM_BYTES * examples} bytes")
    if md5_of(data) != md5:
        raise ShardError(f"{path}: found md5 {md5_of(data)}, expected {md5}")
    return _parse(data)


def _parse(data: bytes | bytearray) -> "array[int]":
    return _little_endian(array("H", bytes(data)))


def _little_endian(items: "array[int]") -> "array[int]":
    """The items in the byte order of the file, or back from it."""
    if sys.byteorder == "big":
        items = array("H", items)
        items.byteswap()
    return items
