"""Patterns of full rows: all ways to write the row's length as a sum of a few lengths.

A method chooses how many rows have each pattern. Then each slot of these rows gets an example of its length,
a shorter one, or none: a plan.
"""

import numpy as np
import numpy.typing as npt

from bertdata.packing.longest_first import pack_longest_first
from bertdata.packing.pack_plan import Histogram, Lengths, PackPlan, plan_of

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


Slots = dict[Lengths, int]
"""Rows by the lengths of their slots, ascending."""


def fill_slots(slots: Slots, histogram: Histogram, most: int, *, hand_down: bool) -> PackPlan:
    """A plan for all examples of the histogram. Those without a slot get rows of their own, greedily.

    hand_down: a surplus slot takes the next shorter example that has none; else it stays empty. Where some
    slots of one length are surplus, those of the first rows in lexical order are.
    """
    rows, without_slot = dict(slots), np.zeros_like(histogram)
    for length in range(len(histogram) - 1, 0, -1):
        holding = sorted(lengths for lengths, number in rows.items() if number and length in lengths)
        surplus = sum(rows[lengths] * lengths.count(length) for lengths in holding) - int(histogram[length])
        if surplus < 0:
            without_slot[length] = -surplus
        for lengths in holding:
            surplus = _shorten(rows, lengths, length, surplus, length - 1 if hand_down else 0)
    for lengths, number in pack_longest_first(without_slot, most).rows_by_lengths:
        rows[lengths] = rows.get(lengths, 0) + number
    return plan_of(len(histogram) - 1, rows)


def _shorten(rows: Slots, lengths: Lengths, length: int, surplus: int, shorter: int) -> int:
    """Shorten surplus slots of ``length`` in rows of these lengths, as far as possible. Returns the rest.

    shorter: the new length; 0: the slot goes.
    """
    for slots in range(lengths.count(length), 0, -1):  # all such slots of a row, then some of one more row
        number = min(rows[lengths], max(0, surplus) // slots)
        if number:
            kept = [one for one in lengths if one != length]
            kept += [length] * (lengths.count(length) - slots) + [shorter] * (slots if shorter else 0)
            changed = tuple(sorted(kept))
            rows[lengths] -= number
            rows[changed] = rows.get(changed, 0) + number
            surplus -= number * slots
    return surplus
