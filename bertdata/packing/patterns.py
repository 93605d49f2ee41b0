"""Patterns: all ways to write the row length as a sum of a few example lengths.

A packing method chooses how many rows follow each pattern. Each length of a pattern is a slot in the row.
``fill_slots`` then assigns examples to the slots. A slot holds an example of exactly its length, a shorter
example, or none.
"""

import numpy as np
import numpy.typing as npt

from bertdata.packing.longest_first import pack_longest_first
from bertdata.packing.pack_plan import Histogram, Lengths, PackPlan, make_plan

Patterns = npt.NDArray[np.int64]
"""Array with one pattern per row, of shape (number of patterns, MAX_PATTERN_LENGTHS).

A pattern is its lengths in ascending order. If it has fewer lengths, zeros are put in front.
"""

MAX_PATTERN_LENGTHS = 3
"""The largest number of lengths in a pattern.

With k lengths there are about max_seq_length ** (k - 1) patterns, so k = 4 would give too many.
"""


def list_full_patterns(max_seq_length: int, most: int) -> Patterns:
    """Return all patterns of up to ``most`` lengths, in lexical order. The sum of each is the row length.

    Patterns have at most MAX_PATTERN_LENGTHS lengths, even if ``most`` is larger.
    """
    # The smallest of three ascending lengths is at most a third of their sum. For example, max_seq_length 4
    # and most 3 give the patterns [0 0 4], [0 1 3], [0 2 2] and [1 1 2].
    first = np.arange(max_seq_length // 3 + 1 if most >= 3 else 1)
    pairs = [_list_patterns_from(int(a), max_seq_length) for a in first]
    found = np.concatenate(pairs)
    return found if most >= 2 else found[:1]


def _list_patterns_from(first: int, max_seq_length: int) -> Patterns:
    """Return the patterns whose first number is ``first``.

    first: the smallest of three lengths. 0 gives the patterns of at most two lengths, among them [0, 0,
        max_seq_length], which is a single length.
    """
    room = max_seq_length - first
    middle = np.arange(first, room // 2 + 1, dtype=np.int64)
    return np.stack([np.full_like(middle, first), middle, room - middle], axis=1)


def read_pattern_lengths(pattern: npt.NDArray[np.int64]) -> Lengths:
    """Return the pattern's lengths without the leading zeros."""
    return tuple(int(length) for length in pattern if length)


Slots = dict[Lengths, int]
"""Number of rows for each combination of slots. A key has the lengths of a row's slots, ascending."""


def fill_slots(slots: Slots, histogram: Histogram, most: int, *, hand_down: bool) -> PackPlan:
    """Assign examples to slots. Pack the examples that get no slot with ``pack_longest_first``.

    If only some slots of a length are surplus, these are in the rows that come first in lexical order.

    slots: number of rows for each combination of slots.
    histogram: number of examples by length.
    most: most examples in a row without slots.
    hand_down: what happens to surplus slots. True gives them to examples of the next shorter length that
        still need slots. False leaves them empty.
    """
    rows, without_slot = dict(slots), np.zeros_like(histogram)
    # From the longest length down, compare the number of slots of this length with its examples. For example,
    # the slots {(2, 6): 5, (4, 4): 1} with 3 examples of length 6 have two surplus slots of length 6. With
    # hand_down these become slots of length 5: {(2, 6): 3, (2, 5): 2, (4, 4): 1}. The next iteration compares
    # length 5, so a slot is shortened further until an example fits it.
    for length in range(len(histogram) - 1, 0, -1):
        holding = sorted(lengths for lengths, number in rows.items() if number and length in lengths)
        surplus = sum(rows[lengths] * lengths.count(length) for lengths in holding) - int(histogram[length])
        if surplus < 0:
            without_slot[length] = -surplus
        for lengths in holding:
            surplus = _shorten_slots(rows, lengths, length, surplus, length - 1 if hand_down else 0)
    for lengths, number in pack_longest_first(without_slot, most).rows_by_lengths:
        rows[lengths] = rows.get(lengths, 0) + number
    return make_plan(len(histogram) - 1, rows)


def _shorten_slots(rows: Slots, lengths: Lengths, length: int, surplus: int, shorter: int) -> int:
    """Shorten surplus slots in the rows with the slots ``lengths``. Return how many slots are still surplus.

    rows: number of rows for each combination of slots, updated in place.
    length: the length of the surplus slots.
    surplus: number of surplus slots.
    shorter: the new length of these slots. 0 removes them.
    """
    # first rows that lose all slots of this length, then a row that loses some
    for slots in range(lengths.count(length), 0, -1):
        number = min(rows[lengths], max(0, surplus) // slots)
        if number:
            kept = [one for one in lengths if one != length]
            kept += [length] * (lengths.count(length) - slots) + [shorter] * (slots if shorter else 0)
            changed = tuple(sorted(kept))
            rows[lengths] -= number
            rows[changed] = rows.get(changed, 0) + number
            surplus -= number * slots
    return surplus
