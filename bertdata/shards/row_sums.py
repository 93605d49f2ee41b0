"""Computes the checksum that NVIDIA publishes for shards with rows of varying length.

It is an md5 over the md5s of the rows' input ids. A row is a list of Python integers in this formula::

    md5(str([md5(str(row)).hexdigest() for row in input_ids]))

The checksum does not depend on how the file stores the ids, or on any other field. Source: the check lists of
NVIDIA's MLPerf training results v4.0.
"""

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from bertdata.errors import ShardError
from bertdata.shards.containers import open_reader
from bertdata.shards.varlength import LARGEST, VarlengthReader

if TYPE_CHECKING:
    from bertdata.examples.columns import Array


def compute_row_sum(path: str) -> str:
    """Return the checksum that NVIDIA publishes for a shard: an md5 over the md5s of the rows' input ids.

    Raises ShardError if its rows are packed or have a fixed length, or if a row cannot be read.
    """
    with open_reader(path) as reader:
        if not isinstance(reader, VarlengthReader):
            raise ShardError(f"{path}: has no sum of rows, expected HDF5 in rows of varying length, unpacked")
        sums = [
            hashlib.md5(text, usedforsecurity=False).hexdigest()
            for values, ends in reader.token_ids()
            for text in _format_rows(values, ends)
        ]
    return hashlib.md5(str(sums).encode(), usedforsecurity=False).hexdigest()


def _format_rows(values: "Array", ends: "Array") -> Iterator[bytes]:
    """Yield each row of ids as Python prints a list, ``str(row)``, in bytes.

    values: the ids of all rows.
    ends: for each row, the index after its last id.
    """
    # Python formats rows that have ids outside the table that _format_numbers makes. For all other rows, the
    # rest of the function gives the same result faster.
    if len(values) and not (values.min() >= 0 and values.max() <= LARGEST):
        for start, stop in zip([0, *ends[:-1]], ends, strict=True):
            yield str(values[start:stop].tolist()).encode()
        return
    # For the rows [5, 12] and [7], the cells hold b"5, ", b"12, " and b"7, ", padded with zero bytes. Without
    # the zero bytes the text is b"5, 12, 7, ". Each row takes its part of the text without the last comma:
    # b"[5, 12]" and b"[7]".
    digits, widths = _format_numbers()
    cells = digits[values]
    text = cells[cells != 0].tobytes()
    stops = widths[values].cumsum()
    start = 0
    for stop in (stops[ends - 1] if len(values) else ends).tolist():
        yield b"[" + text[start : max(start, stop - len(", "))] + b"]"
        start = max(start, stop)


@lru_cache(maxsize=1)
def _format_numbers() -> "tuple[Array, Array]":
    """Return a table of the texts "0, ", "1, " and so on, padded with zero bytes, and the length of each
    text.
    """
    import numpy as np

    texts = np.array([f"{number}, ".encode() for number in range(LARGEST + 1)])
    digits = texts.view(np.uint8).reshape(len(texts), -1)
    return digits, np.count_nonzero(digits, axis=1)
