"""Attention over sequences padded to the longest, for devices that have none without padding."""

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
    """Attention over sequences padded to the longest, with work for the padding.

    See ``trainer.data.batches.FlatAttention``.
    """
    tokens = len(query)
    if reach is not None:
        from trainer.data.window_attention import flat_window_attention

        return flat_window_attention(query, key, value, ends, reach, dropout, scale)
    starts, lengths = ends[:-1], ends.diff()
    places = torch.arange(longest, dtype=ends.dtype, device=ends.device)
    rows = (starts[:, None] + places).clamp(max=tokens - 1)
    # An empty sequence reads one position, because an empty softmax would not be finite.
    mask = (places < lengths[:, None]) | (places == 0)
    query, key, value = (part[rows].transpose(1, 2) for part in (query, key, value))
    attended = F.scaled_dot_product_attention(query, key, value, mask[:, None, None], dropout, scale=scale)
    every = torch.arange(tokens, dtype=ends.dtype, device=ends.device)
    # Not in ends[1:]: of a view the GPU's compiler searches the whole.
    sequence = torch.searchsorted(ends, every, right=True) - 1
    return attended.transpose(1, 2)[sequence, every - starts[sequence]]
