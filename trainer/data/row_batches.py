"""Batches of padded rows, for devices that need rows, and attention within the rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from bertdata.examples.columns import Array
from trainer.data.batches import Batch, FlatAttention, Sequences, Targets
from trainer.data.window_attention import window_attention


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RowBatch(Batch):
    """B rows as tensors: S ids and P masked slots each, padded with zeros.

    A row is an example, or a pack of up to K whose [CLS] stand at ``next_sentence_positions``; the attention
    mask then numbers the examples from 1, and tokens of one number see each other. All are int32 but the
    weights, which are float32: 1, or 0 for an unused slot. A padding row, which fills a batch of fixed shape,
    has weights 0 and the label -1, as has a missing example of a pack.
    """

    input_ids: Tensor  # (B, S)
    token_type_ids: Tensor  # (B, S)
    attention_mask: Tensor  # (B, S)
    masked_lm_positions: Tensor  # (B, P)
    masked_lm_ids: Tensor  # (B, P)
    masked_lm_weights: Tensor  # (B, P)
    next_sentence_labels: Tensor  # (B,), of packs (B, K): 1 where the second segment is random
    position_ids: Tensor | None = None  # (S,) or (B, S): for packs, and devices that need them as input
    next_sentence_positions: Tensor | None = None  # (B, K), for packs
    targets: Targets = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Mapping[str, Array], targets: Mapping[str, Array]) -> "RowBatch":
        """The batch of these arrays, whose memory it shares."""
        tensors: dict[str, Any] = {name: torch.from_numpy(array) for name, array in columns.items()}
        return cls(**tensors, targets={name: torch.from_numpy(array) for name, array in targets.items()})

    def cut(self, start: int, stop: int) -> "RowBatch":
        """A view of examples ``start`` to ``stop``. Position ids shared by all examples stay whole."""
        cut = self.map(lambda tensor: tensor[start:stop])
        shared = self.position_ids
        return replace(cut, position_ids=shared) if shared is not None and shared.dim() == 1 else cut

    def positions(self) -> Tensor:
        positions = self.position_ids
        if positions is None:
            positions = torch.arange(self.input_ids.shape[1], device=self.input_ids.device)
        return positions.expand(self.input_ids.shape).reshape(-1)

    def starts(self) -> Tensor:
        if self.next_sentence_positions is None:
            return self._row_starts()
        return (self.next_sentence_positions + self._row_starts()[:, None]).reshape(-1)

    def masked(self) -> Tensor:
        return (self.masked_lm_positions + self._row_starts()[:, None]).reshape(-1)

    def sequences(self, attention: FlatAttention) -> "PaddedSequences":
        return PaddedSequences(self.attention_mask, packed=self.next_sentence_positions is not None)

    def most_tokens(self) -> int:
        return self.input_ids.shape[1]

    def lengths(self) -> Array:
        numbers = self.attention_mask.numpy()  # the sequences of a row are numbered from 1
        each = [np.count_nonzero(numbers == number, axis=1) for number in range(1, int(numbers.max()) + 1)]
        return np.concatenate(each).astype(np.int64) if each else np.zeros(0, np.int64)

    def _row_starts(self) -> Tensor:
        """(B,): the row of the model's matrices at which each padded row begins."""
        size, length = self.input_ids.shape
        return torch.arange(size, device=self.input_ids.device) * length


class PaddedSequences(Sequences):
    """B padded rows of S positions, each a sequence or a pack of several.

    Devices that split the model see each of its linear layers.
    """

    one_product = False

    def __init__(self, real: Tensor, packed: bool = False) -> None:
        """real: (B, S), nonzero at positions that attention may read. packed: its number, from 1."""
        self.length, self.real = real.shape[1], real
        if packed:  # padding has the number 0 and sees padding, so that no softmax is empty
            self.mask = (real[:, :, None] == real[:, None, :])[:, None]
            return
        # Padding rows attend to their first position, because an empty softmax would not be finite.
        first = torch.arange(self.length, device=real.device) == 0
        self.mask = (real.bool() | first)[:, None, None]

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        dropout: float,
        scale: float | None = None,
        reach: int | None = None,
    ) -> Tensor:
        if reach is not None:
            # The number of each position's sequence over all rows, or of its row's padding.
            firsts = torch.arange(len(self.real), device=self.real.device)[:, None] * (self.length + 1)
            numbers = (firsts + self.real).reshape(-1)
            return window_attention(query, key, value, numbers, reach, dropout, scale)
        rows = (part.view(-1, self.length, *part.shape[1:]).transpose(1, 2) for part in (query, key, value))
        query, key, value = rows
        options: dict[str, Any] = {} if scale is None else {"scale": scale}  # PopTorch's torch 2.0 lacks it
        attended = F.scaled_dot_product_attention(query, key, value, self.mask, dropout, **options)
        return attended.transpose(1, 2).flatten(0, 1)
