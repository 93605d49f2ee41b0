"""A packing plan: how many rows hold which combination of example lengths."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bertdata.errors import ShardError
from bertdata.records import Buffer

Histogram = npt.NDArray[np.int64]
"""Number of examples by length: item l of the array is the number of examples with l tokens."""

Lengths = tuple[int, ...]
"""The lengths of the examples in a row, in ascending order."""


@dataclass(frozen=True, kw_only=True)
class PackPlan:
    """A packing plan: how many rows to make for each combination of lengths.

    rows_by_lengths: sorted pairs of (lengths in ascending order, number of rows with these lengths). The
        lengths add up to at most max_seq_length. Every example that the plan was made for has exactly one
        place.
    """

    max_seq_length: int
    rows_by_lengths: tuple[tuple[Lengths, int], ...]

    @cached_property
    def rows(self) -> int:
        return sum(rows for _, rows in self.rows_by_lengths)

    @cached_property
    def examples(self) -> int:
        return sum(len(lengths) * rows for lengths, rows in self.rows_by_lengths)

    @cached_property
    def tokens(self) -> int:
        return sum(sum(lengths) * rows for lengths, rows in self.rows_by_lengths)

    @property
    def efficiency(self) -> float:
        """Share of the rows' positions that hold tokens, from 0 to 1."""
        return self.tokens / (self.rows * self.max_seq_length)

    @property
    def examples_per_row(self) -> float:
        return self.examples / self.rows

    @property
    def most_in_a_row(self) -> int:
        """The largest number of examples in a row."""
        return max(len(lengths) for lengths, _ in self.rows_by_lengths)

    def histogram(self) -> Histogram:
        """Return how many examples of each length the plan has places for."""
        counts = np.zeros(self.max_seq_length + 1, np.int64)
        for lengths, rows in self.rows_by_lengths:
            for length in lengths:
                counts[length] += rows
        return counts


def make_plan(max_seq_length: int, rows_by_lengths: Mapping[Lengths, int]) -> PackPlan:
    """Make a plan from the number of rows by lengths.

    Rows without examples and combinations without rows are dropped.
    """
    found = {lengths: rows for lengths, rows in rows_by_lengths.items() if lengths and rows}
    return PackPlan(max_seq_length=max_seq_length, rows_by_lengths=tuple(sorted(found.items())))


def count_lengths(lengths: Buffer, max_seq_length: int, name: str) -> Histogram:
    """Return how many examples of each length a shard has.

    Raises ShardError, which names the first example that is empty or longer than a row.

    lengths: number of ids of each example.
    name: the shard, for the error.
    """
    found = np.asarray(lengths)
    wrong = np.flatnonzero((found > max_seq_length) | (found == 0))
    if len(wrong):
        raise ShardError(
            f"{name}: record {wrong[0]}: {found[wrong[0]]} tokens, expected 1 to {max_seq_length}"
        )
    return np.bincount(found, minlength=max_seq_length + 1).astype(np.int64)
