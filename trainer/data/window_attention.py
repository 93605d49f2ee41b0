"""Attention within a window, in plain PyTorch for any device.

A window is the part of a sequence that a token sees: at most ``reach`` tokens on each side. The work grows
with the window's size, not with the sequence's length. All tokens of a batch, regardless of their sequences,
are cut into blocks of ``reach`` tokens. So the tokens of a block only see tokens of their block and of the
two neighbouring blocks.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def attend_in_windows(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    numbers: Tensor,
    reach: int,
    dropout: float,
    scale: float | None = None,
) -> Tensor:
    """Return the attention of each token to the tokens of its sequence that are at most ``reach`` away.

    query, key, value: (T, heads, head size), like the result. numbers: (T,), number of each token's sequence,
    0 or more. The tokens of a sequence are adjacent.
    """
    # reach 2, tokens 0 1 | 2 3 | 4 5: block 1 (tokens 2, 3) is multiplied with tokens 0 to 5. Padding of -1
    # makes T a multiple of reach and adds a block at each end, so that the first and last block have two
    # neighbours.
    tokens = len(query)
    missing = -tokens % reach
    places = torch.arange(-reach, tokens + missing + reach, device=query.device)
    numbers = F.pad(numbers, (reach, missing + reach), value=-1)
    apart = _cut_into_blocks(places, reach)[:, :, None] - _join_neighbours(places, reach)[:, None]
    alike = _cut_into_blocks(numbers, reach)[:, :, None] == _join_neighbours(numbers, reach)[:, None]
    mask = (alike & (apart.abs() <= reach))[:, None]
    ends = (0, 0, 0, 0, reach, missing + reach)
    query = _cut_into_blocks(F.pad(query, ends), reach).transpose(1, 2)
    key, value = (_join_neighbours(F.pad(part, ends), reach).transpose(1, 2) for part in (key, value))
    attended: Tensor = F.scaled_dot_product_attention(query, key, value, mask, dropout, scale=scale)
    return attended.transpose(1, 2).flatten(0, 1)[:tokens]


def attend_in_flat_windows(
    query: Tensor, key: Tensor, value: Tensor, ends: Tensor, reach: int, dropout: float, scale: float | None
) -> Tensor:
    """Return ``attend_in_windows`` for sequences that lie end to end.

    ends: 0, then the row after each sequence.
    """
    every = torch.arange(len(query), dtype=ends.dtype, device=ends.device)
    # Search in the whole ``ends``, not in the view ends[1:]: compiled for a GPU, a search in a view would
    # search the whole underlying tensor.
    numbers = torch.searchsorted(ends, every, right=True) - 1
    return attend_in_windows(query, key, value, numbers, reach, dropout, scale)


def _cut_into_blocks(rows: Tensor, size: int) -> Tensor:
    """Cut rows, without the additional block at each end, into blocks: (blocks, size, ...)."""
    return rows[size:-size].reshape(-1, size, *rows.shape[1:])


def _join_neighbours(rows: Tensor, size: int) -> Tensor:
    """Return for each block its rows and those of both neighbours: (blocks, 3 size, ...)."""
    blocks = rows.reshape(-1, size, *rows.shape[1:])
    return torch.cat((blocks[:-2], blocks[1:-1], blocks[2:]), 1)
