"""Blocks in which a processor computes attention within a window: work grows with the window."""

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cache

import torch
from torch import Tensor

_SIZE = 32
"""Tokens of a block: fewer make small products, more compute scores that are out of reach."""


def masked_blocks(ends: Sequence[int], reach: int) -> Iterator[tuple[slice, slice, Tensor | None]]:
    """The blocks, and what is added to the scores of each.

    That is minus infinity where a row is out of reach, else 0, and None where all are within reach.
    """
    for rows, seen in blocks_of(ends, reach):
        farthest = max(seen.stop - 1 - rows.start, rows.stop - 1 - seen.start)
        place = reach - (rows.start - seen.start)
        band = _band(reach)[: rows.stop - rows.start, place : place + seen.stop - seen.start]
        yield rows, seen, band if farthest > reach else None


def blocks_of(ends: Sequence[int], reach: int) -> Iterator[tuple[slice, slice]]:
    """Rows that are computed together, and the rows that they see. ends: of the sequences, 0 first."""
    for start, end in itertools.pairwise(ends):
        for first in range(start, end, _SIZE):
            last = min(first + _SIZE, end)
            yield slice(first, last), slice(max(first - reach, start), min(last + reach, end))


def scored_pairs(ends: Sequence[int], reach: int) -> int:
    """Pairs of a row and one that is seen for which a score is computed, in reach or not."""
    return sum((rows.stop - rows.start) * (seen.stop - seen.start) for rows, seen in blocks_of(ends, reach))


@cache
def _band(reach: int) -> Tensor:
    """The bias of the scores of a whole block and all that it sees."""
    apart = torch.arange(-reach, _SIZE + reach) - torch.arange(_SIZE)[:, None]
    return torch.zeros(apart.shape).masked_fill_(apart.abs() > reach, -math.inf)
