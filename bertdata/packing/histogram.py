"""Histograms of examples' lengths."""

import numpy as np

from bertdata.errors import ShardError
from bertdata.packing.plan import Histogram
from bertdata.records import Buffer


def count_lengths(lengths: Buffer, max_seq_length: int, name: str) -> Histogram:
    """The histogram of some examples' lengths. ShardError names the first that no row can hold.

    name: of their shard, for the error.
    """
    found = np.asarray(lengths)
    wrong = np.flatnonzero((found > max_seq_length) | (found == 0))
    if len(wrong):
        raise ShardError(
            f"{name}: record {wrong[0]}: {found[wrong[0]]} tokens, expected 1 to {max_seq_length}"
        )
    return np.bincount(found, minlength=max_seq_length + 1).astype(np.int64)
