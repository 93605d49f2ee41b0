"""Attention within a window, in plain PyTorch for any device.

A window is the part of a sequence that a token sees: at most ``reach`` tokens on each side. All tokens of a
batch, regardless of their sequences, are divided into blocks of ``reach`` tokens. So a token only sees tokens
of its own block and of the two neighbouring blocks. For each token, the work depends on the size of the
window, not on the length of the sequence.
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

    query, key, value: tensors of shape (T, heads, head size) for T tokens. The result has the same shape.
    numbers: number of each token's sequence, 0 or more, shape (T,). The tokens of a sequence are adjacent.
    reach: number of tokens on each side that a token sees.
    dropout: fraction of the attention weights that are set to 0.
    scale: factor for the product of query and key. None means (head size)^-1/2.
    """
    # For example, with reach 2 the tokens 0 to 5 are divided into blocks 0 1 | 2 3 | 4 5. The queries of
    # block 1 (tokens 2 and 3) are multiplied with the keys of tokens 0 to 5. Padding with the sequence number
    # -1 makes T a multiple of reach. It also adds a block at each end, so that the first and the last block
    # have two neighbours.
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
    """Compute attention as ``attend_in_windows`` does, for the sequences of a flat batch.

    ends: 0, then for each sequence the row after its last token.
    """
    every = torch.arange(len(query), dtype=ends.dtype, device=ends.device)
    # Search in the whole tensor ``ends``, not in the view ends[1:]. If this code is compiled for a GPU, a
    # search in a view would wrongly search the whole tensor that the view belongs to.
    numbers = torch.searchsorted(ends, every, right=True) - 1
    return attend_in_windows(query, key, value, numbers, reach, dropout, scale)


def _cut_into_blocks(rows: Tensor, size: int) -> Tensor:
    """Divide rows into blocks. Return a tensor of shape (blocks, size, ...), without the block of padding at
    each end.
    """
    return rows[size:-size].reshape(-1, size, *rows.shape[1:])


def _join_neighbours(rows: Tensor, size: int) -> Tensor:
    """Return for each block its rows and the rows of both neighbouring blocks, as a tensor of shape (blocks,
    3 size, ...).
    """
    blocks = rows.reshape(-1, size, *rows.shape[1:])
    return torch.cat((blocks[:-2], blocks[1:-1], blocks[2:]), 1)
