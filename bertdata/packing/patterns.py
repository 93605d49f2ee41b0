"""Patterns of full rows: all ways to write the row's length as a sum of a few lengths."""

import numpy as np
import numpy.typing as npt

from bertdata.packing.plan import Lengths

Patterns = npt.NDArray[np.int64]
"""A pattern a row: ascending lengths, zeros before them where there are fewer."""

LONGEST_SUMS = 3
"""Lengths in a sum at most: their number grows with the row's length to the power of one less."""


def full_patterns(max_seq_length: int, most: int) -> Patterns:
    """Every pattern of up to ``most`` lengths, LONGEST_SUMS at most, that fills a row. In lexical order."""
    first = np.arange(max_seq_length // 3 + 1 if most >= 3 else 1)
    pairs = [_pairs(int(a), max_seq_length) for a in first]
    found = np.concatenate(pairs)
    return found if most >= 2 else found[:1]


def _pairs(first: int, max_seq_length: int) -> Patterns:
    """The patterns that begin with ``first``, 0 for none. Then the middle length may be missing too."""
    room = max_seq_length - first
    middle = np.arange(first, room // 2 + 1, dtype=np.int64)
    return np.stack([np.full_like(middle, first), middle, room - middle], axis=1)


def lengths_of(pattern: npt.NDArray[np.int64]) -> Lengths:
    """The pattern without the zeros."""
    return tuple(int(length) for length in pattern if length)
