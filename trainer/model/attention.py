"""Attention of sequences that follow each other without padding."""

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F


class FlatAttention(Protocol):
    """Attention of each token to the tokens of its own sequence. Devices have their own implementations."""

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        ends: Tensor,
        longest: int,
        dropout: float,
        scale: float | None = None,
    ) -> Tensor:
        """The attended values, (T, heads, head size) like query, key and value.

        ends: (N + 1,) int32, 0 and then the row after each of the N sequences, some of which may be empty.
        longest: no sequence has more tokens.
        scale: the factor of query times key; None stands for (head size)^-1/2.
        """
        ...


def padded_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    ends: Tensor,
    longest: int,
    dropout: float,
    scale: float | None = None,
) -> Tensor:
    """Attention over sequences padded to the longest: for any device, with work for the padding."""
    tokens = len(query)
    starts, lengths = ends[:-1], ends.diff()
    places = torch.arange(longest, dtype=ends.dtype, device=ends.device)
    rows = (starts[:, None] + places).clamp(max=tokens - 1)
    # An empty sequence reads one position, because an empty softmax would not be finite.
    mask = (places < lengths[:, None]) | (places == 0)
    query, key, value = (part[rows].transpose(1, 2) for part in (query, key, value))
    attended = F.scaled_dot_product_attention(query, key, value, mask[:, None, None], dropout, scale=scale)
    every = torch.arange(tokens, dtype=ends.dtype, device=ends.device)
    sequence = torch.searchsorted(ends[1:], every, right=True)
    return attended.transpose(1, 2)[sequence, every - starts[sequence]]
