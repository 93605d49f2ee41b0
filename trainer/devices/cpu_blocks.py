"""Blocks in which a processor computes attention within a window: work grows with the window."""

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cache

import torch
from torch import Tensor

_LEAST = 32
"""Tokens of a block, or as many as a token sees on one side: fewer make small products, more see too much."""


def blocks_of(ends: Sequence[int], reach: int) -> Iterator[tuple[slice, slice, Tensor | None]]:
    """Rows that are computed together, the rows that they see, and what is added to their scores.

    ends: of the sequences, 0 first. The last is minus infinity where a row is out of reach, else 0, and None
    where all are within reach.
    """
    size = max(reach, _LEAST)
    for start, end in itertools.pairwise(ends):
        for first in range(start, end, size):
            rows = slice(first, min(first + size, end))
            seen = slice(max(first - reach, start), min(rows.stop + reach, end))
            farthest = max(seen.stop - 1 - rows.start, rows.stop - 1 - seen.start)
            place = reach - (rows.start - seen.start)
            band = _band(reach)[: rows.stop - first, place : place + seen.stop - seen.start]
            yield rows, seen, band if farthest > reach else None


@cache
def _band(reach: int) -> Tensor:
    """What is added to the scores of a whole block and all that it sees."""
    size = max(reach, _LEAST)
    apart = torch.arange(-reach, size + reach) - torch.arange(size)[:, None]
    return torch.zeros(apart.shape).masked_fill_(apart.abs() > reach, -math.inf)
