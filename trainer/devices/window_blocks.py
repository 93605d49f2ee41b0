"""Blocks for attention within a window on a processor, where the work grows with the window."""

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cache

import torch
from torch import Tensor

_SIZE = 32
"""Tokens per block.

Small blocks make small products, large blocks compute more scores that are out of reach.
"""


def iterate_masked_blocks(ends: Sequence[int], reach: int) -> Iterator[tuple[slice, slice, Tensor | None]]:
    """Yield the blocks of ``iterate_blocks``, each with a mask: numbers to add to its scores.

    A number is minus infinity if the row is out of reach, otherwise 0. The mask is None if all rows are
    within reach.
    """
    for rows, seen in iterate_blocks(ends, reach):
        farthest = max(seen.stop - 1 - rows.start, rows.stop - 1 - seen.start)
        place = reach - (rows.start - seen.start)
        band = _make_band_mask(reach)[: rows.stop - rows.start, place : place + seen.stop - seen.start]
        yield rows, seen, band if farthest > reach else None


def iterate_blocks(ends: Sequence[int], reach: int) -> Iterator[tuple[slice, slice]]:
    """Yield blocks: (rows whose attention is computed together, rows that these attend to). ends: 0, then the
    row after each sequence.
    """
    # Example with reach 2 and a sequence of rows 0 to 79: rows 0-31 see rows 0-33, rows 32-63 see rows 30-65,
    # and rows 64-79 see rows 62-79.
    for start, end in itertools.pairwise(ends):
        for first in range(start, end, _SIZE):
            last = min(first + _SIZE, end)
            yield slice(first, last), slice(max(first - reach, start), min(last + reach, end))


def count_scored_pairs(ends: Sequence[int], reach: int) -> int:
    """Return the number of pairs of rows for which a score is computed, whether within reach or not."""
    return sum(
        (rows.stop - rows.start) * (seen.stop - seen.start) for rows, seen in iterate_blocks(ends, reach)
    )


@cache
def _make_band_mask(reach: int) -> Tensor:
    """Return the mask of a full block: numbers to add to its scores with all rows that it sees.

    They are minus infinity for rows out of reach, otherwise 0.
    """
    apart = torch.arange(-reach, _SIZE + reach) - torch.arange(_SIZE)[:, None]
    return torch.zeros(apart.shape).masked_fill_(apart.abs() > reach, -math.inf)
