"""A plan of packed rows: how many rows hold examples of which lengths."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bertdata.errors import ShardError
from bertdata.records import Buffer

Histogram = npt.NDArray[np.int64]
"""Item l is the number of examples of l tokens; S + 1 items, for lengths 0 to S."""

Lengths = tuple[int, ...]
"""The lengths of a row's examples, left to right, none shorter than the one before."""


@dataclass(frozen=True, kw_only=True)
class PackPlan:
    """Rows by the lengths of their examples, in ascending order. Lengths add up to at most max_seq_length.

    Each example of the histogram that it was made for has exactly one place.
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
        """Share of the rows' positions that hold tokens."""
        return self.tokens / (self.rows * self.max_seq_length)

    @property
    def examples_per_row(self) -> float:
        return self.examples / self.rows

    @property
    def most_in_a_row(self) -> int:
        """Examples of the fullest row."""
        return max(len(lengths) for lengths, _ in self.rows_by_lengths)

    def histogram(self) -> Histogram:
        """The examples that have a place, by length."""
        counts = np.zeros(self.max_seq_length + 1, np.int64)
        for lengths, rows in self.rows_by_lengths:
            for length in lengths:
                counts[length] += rows
        return counts


def plan_of(max_seq_length: int, rows_by_lengths: Mapping[Lengths, int]) -> PackPlan:
    """The plan of these rows. Those of no example, or of which there are none, are left out."""
    found = {lengths: rows for lengths, rows in rows_by_lengths.items() if lengths and rows}
    return PackPlan(max_seq_length=max_seq_length, rows_by_lengths=tuple(sorted(found.items())))


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
