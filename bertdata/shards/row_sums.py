"""The sum that NVIDIA publishes of a shard of varying length: an md5 over the md5s of its rows' input ids.

::

    md5(str([md5(str(row)).hexdigest() for row in input_ids]))        # row: a list of Python's integers

It does not depend on the bytes of the file, nor on anything else of the examples. Source: the check lists
of NVIDIA's MLPerf training results v4.0.
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


def row_sum(path: str) -> str:
    """The sum of a shard. ShardError where it has no rows of varying length, or a row cannot be read."""
    with open_reader(path) as reader:
        if not isinstance(reader, VarlengthReader):
            raise ShardError(f"{path}: has no sum of rows, expected HDF5 in rows of varying length, unpacked")
        sums = [
            hashlib.md5(text, usedforsecurity=False).hexdigest()
            for values, ends in reader.token_ids()
            for text in _row_texts(values, ends)
        ]
    return hashlib.md5(str(sums).encode(), usedforsecurity=False).hexdigest()


def _row_texts(values: "Array", ends: "Array") -> Iterator[bytes]:
    """``str`` of each row as a list of integers."""
    if len(values) and not (values.min() >= 0 and values.max() <= LARGEST):
        for start, stop in zip([0, *ends[:-1]], ends, strict=True):
            yield str(values[start:stop].tolist()).encode()
        return
    digits, widths = _numbers()
    cells = digits[values]
    text = cells[cells != 0].tobytes()
    stops = widths[values].cumsum()
    start = 0
    for stop in (stops[ends - 1] if len(values) else ends).tolist():
        yield b"[" + text[start : max(start, stop - len(", "))] + b"]"
        start = max(start, stop)


@lru_cache(maxsize=1)
def _numbers() -> "tuple[Array, Array]":
    """Each number's text with a comma and a blank behind it, filled up with zeros, and its length."""
    import numpy as np

    texts = np.array([f"{number}, ".encode() for number in range(LARGEST + 1)])
    digits = texts.view(np.uint8).reshape(len(texts), -1)
    return digits, np.count_nonzero(digits, axis=1)
