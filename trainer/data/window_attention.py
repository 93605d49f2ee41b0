"""Attention within a window, in plain PyTorch for any device: work grows with the window.

All tokens of a batch, whatever their sequences, are cut into blocks as long as a token sees on one side. The
tokens of a block then see none but its own and the two beside it.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def window_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    numbers: Tensor,
    reach: int,
    dropout: float,
    scale: float | None = None,
) -> Tensor:
    """Attention of each token to those of its sequence that are at most ``reach`` tokens away.

    query, key, value: (T, heads, head size), like the result. numbers: (T,), the number of each token's
    sequence, at least 0; those of a sequence stand in a row.
    """
    tokens = len(query)
    missing = -tokens % reach
    places = torch.arange(-reach, tokens + missing + reach, device=query.device)
    numbers = F.pad(numbers, (reach, missing + reach), value=-1)
    apart = _blocks(places, reach)[:, :, None] - _neighbours(places, reach)[:, None]
    alike = _blocks(numbers, reach)[:, :, None] == _neighbours(numbers, reach)[:, None]
    mask = (alike & (apart.abs() <= reach))[:, None]
    ends = (0, 0, 0, 0, reach, missing + reach)
    query = _blocks(F.pad(query, ends), reach).transpose(1, 2)
    key, value = (_neighbours(F.pad(part, ends), reach).transpose(1, 2) for part in (key, value))
    attended: Tensor = F.scaled_dot_product_attention(query, key, value, mask, dropout, scale=scale)
    return attended.transpose(1, 2).flatten(0, 1)[:tokens]


def flat_window_attention(
    query: Tensor, key: Tensor, value: Tensor, ends: Tensor, reach: int, dropout: float, scale: float | None
) -> Tensor:
    """``window_attention`` of sequences that follow one another. ends: 0, then the row after each."""
    every = torch.arange(len(query), dtype=ends.dtype, device=ends.device)
    # Not in ends[1:]: of a view the GPU's compiler searches the whole.
    numbers = torch.searchsorted(ends, every, right=True) - 1
    return window_attention(query, key, value, numbers, reach, dropout, scale)


def _blocks(rows: Tensor, size: int) -> Tensor:
    """(blocks, size, ...) of rows that have one block more at each end."""
    return rows[size:-size].reshape(-1, size, *rows.shape[1:])


def _neighbours(rows: Tensor, size: int) -> Tensor:
    """(blocks, 3 size, ...): the rows of each block, of the one before and of the one behind."""
    blocks = rows.reshape(-1, size, *rows.shape[1:])
    return torch.cat((blocks[:-2], blocks[1:-1], blocks[2:]), 1)
