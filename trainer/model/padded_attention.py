"""Attention for devices that cannot compute flat batches: sequences are padded to the longest first."""

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

    The padding costs computing time. Arguments and result are explained at
    ``trainer.data.batches.FlatAttention``.
    """
    tokens = len(query)
    if reach is not None:
        from trainer.data.window_attention import attend_in_flat_windows

        return attend_in_flat_windows(query, key, value, ends, reach, dropout, scale)
    starts, lengths = ends[:-1], ends.diff()
    places = torch.arange(longest, dtype=ends.dtype, device=ends.device)
    # rows: for each sequence and each position the row of its token, shape (N, longest). Positions after a
    # sequence's end get the row of any token, and are masked below.
    rows = (starts[:, None] + places).clamp(max=tokens - 1)
    # An empty sequence attends to its first position, because a softmax over nothing is not finite.
    mask = (places < lengths[:, None]) | (places == 0)
    query, key, value = (part[rows].transpose(1, 2) for part in (query, key, value))
    attended = F.scaled_dot_product_attention(query, key, value, mask[:, None, None], dropout, scale=scale)
    every = torch.arange(tokens, dtype=ends.dtype, device=ends.device)
    # Search in all of ``ends``, not in the slice ends[1:]. Compiled for a GPU, a search in a slice wrongly
    # searches the whole tensor.
    sequence = torch.searchsorted(ends, every, right=True) - 1
    return attended.transpose(1, 2)[sequence, every - starts[sequence]]
