"""Attention within sequences, which are padded rows or follow each other without padding."""

from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from trainer.data.batches import Batch, FlatBatch


class Sequences(Protocol):
    """The sequences of a batch, and attention within them.

    one_product: query, key and value may come from one product.
    """

    one_product: bool

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, dropout: float, scale: float | None
    ) -> Tensor:
        """The attended values, (tokens, heads, head size) like query, key and value.

        scale: the factor of query times key; None stands for (head size)^-1/2.
        """
        ...


class FlatAttention(Protocol):
    """Attention of each token to the tokens of its own sequence; devices have their own implementations."""

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


class FlatSequences:
    """Sequences without padding, given by their ends."""

    one_product = True

    def __init__(self, ends: Tensor, longest: int, attention: FlatAttention) -> None:
        self.ends, self.longest, self.attention = ends, longest, attention

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, dropout: float, scale: float | None
    ) -> Tensor:
        return self.attention(query, key, value, self.ends, self.longest, dropout, scale)


class PaddedSequences:
    """B padded rows of S positions, each a sequence or a pack of several.

    Devices that split the model see each of its linear layers.
    """

    one_product = False

    def __init__(self, real: Tensor, packed: bool = False) -> None:
        """real: (B, S), nonzero at positions that attention may read; packed: its number, from 1."""
        self.length = real.shape[1]
        if packed:  # padding has the number 0 and sees padding, so that no softmax is empty
            self.mask = (real[:, :, None] == real[:, None, :])[:, None]
            return
        # Padding rows attend to their first position, because an empty softmax would not be finite.
        first = torch.arange(self.length, device=real.device) == 0
        self.mask = (real.bool() | first)[:, None, None]

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, dropout: float, scale: float | None
    ) -> Tensor:
        rows = (part.view(-1, self.length, *part.shape[1:]).transpose(1, 2) for part in (query, key, value))
        query, key, value = rows
        options: dict[str, Any] = {} if scale is None else {"scale": scale}  # PopTorch's torch 2.0 lacks it
        attended = F.scaled_dot_product_attention(query, key, value, self.mask, dropout, **options)
        return attended.transpose(1, 2).flatten(0, 1)


def sequences_of(batch: Batch, attention: FlatAttention) -> Sequences:
    """The batch's sequences; ``attention`` is used where they have no padding."""
    if isinstance(batch, FlatBatch):
        return FlatSequences(batch.ends, batch.longest, attention)
    return PaddedSequences(batch.attention_mask, packed=batch.next_sentence_positions is not None)
