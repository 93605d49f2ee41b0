"""Blocks of rows for attention within a window on a CPU, so that the work grows with the window's width."""

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cache

import torch
from torch import Tensor

_SIZE = 32
"""Number of tokens per block.

With smaller blocks the matrix products are too small to be fast. With larger blocks more scores are computed
that are outside the window.
"""


def iterate_masked_blocks(ends: Sequence[int], reach: int) -> Iterator[tuple[slice, slice, Tensor | None]]:
    """Yield the blocks of ``iterate_blocks``, each with the mask to add to its scores.

    The mask is minus infinity for pairs of rows that are out of reach, otherwise 0. It is None if all rows
    are within reach.
    """
    for rows, seen in iterate_blocks(ends, reach):
        farthest = max(seen.stop - 1 - rows.start, rows.stop - 1 - seen.start)
        place = reach - (rows.start - seen.start)
        band = _make_band_mask(reach)[: rows.stop - rows.start, place : place + seen.stop - seen.start]
        yield rows, seen, band if farthest > reach else None


def iterate_blocks(ends: Sequence[int], reach: int) -> Iterator[tuple[slice, slice]]:
    """Yield (rows whose attention is computed together, rows that they attend to) for each block.

    ends: 0, then for each sequence the row after its last token.
    reach: number of tokens that a token sees on each side.
    """
    # Example with reach 2 and a sequence in rows 0 to 79: rows 0-31 see rows 0-33, rows 32-63 see rows 30-65,
    # and rows 64-79 see rows 62-79.
    for start, end in itertools.pairwise(ends):
        for first in range(start, end, _SIZE):
            last = min(first + _SIZE, end)
            yield slice(first, last), slice(max(first - reach, start), min(last + reach, end))


def count_scored_pairs(ends: Sequence[int], reach: int) -> int:
    """Return the number of pairs of rows for which the blocks compute a score. Some are out of reach."""
    return sum(
        (rows.stop - rows.start) * (seen.stop - seen.start) for rows, seen in iterate_blocks(ends, reach)
    )


@cache
def _make_band_mask(reach: int) -> Tensor:
    """Return the mask of a full block: minus infinity for pairs of rows that are out of reach, otherwise
    0.
    """
    apart = torch.arange(-reach, _SIZE + reach) - torch.arange(_SIZE)[:, None]
    return torch.zeros(apart.shape).masked_fill_(apart.abs() > reach, -math.inf)
