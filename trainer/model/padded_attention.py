"""Attention over sequences padded to the longest, for devices without attention for flat batches."""

import torch
from torch import Tensor
from torch.nn import functional as F


def padded_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    ends: Tensor,
    longest: int,
    dropout: float,
    scale: float | None = None,
    reach: int | None = None,
) -> Tensor:
    """Pad the sequences to the longest, compute attention, and return the result without padding.

    The padding costs computing time too. Arguments and result are described at
    ``trainer.data.batches.FlatAttention``.
    """
    tokens = len(query)
    if reach is not None:
        from trainer.data.window_attention import attend_in_flat_windows

        return attend_in_flat_windows(query, key, value, ends, reach, dropout, scale)
    starts, lengths = ends[:-1], ends.diff()
    places = torch.arange(longest, dtype=ends.dtype, device=ends.device)
    # rows: for each sequence and place the row of its token, (N, longest). Places behind the end read any row
    # and are masked.
    rows = (starts[:, None] + places).clamp(max=tokens - 1)
    # An empty sequence attends to one position, because a softmax over nothing is not finite.
    mask = (places < lengths[:, None]) | (places == 0)
    query, key, value = (part[rows].transpose(1, 2) for part in (query, key, value))
    attended = F.scaled_dot_product_attention(query, key, value, mask[:, None, None], dropout, scale=scale)
    every = torch.arange(tokens, dtype=ends.dtype, device=ends.device)
    # Search in the whole ``ends``, not in the view ends[1:]: compiled for a GPU, a search in a view would
    # search the whole underlying tensor.
    sequence = torch.searchsorted(ends, every, right=True) - 1
    return attended.transpose(1, 2)[sequence, every - starts[sequence]]
