"""Batches of padded rows, for devices that cannot use flat batches, and attention within the rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from bertdata.examples.columns import Array
from trainer.data.batches import Batch, FlatAttention, Sequences, Targets
from trainer.data.window_attention import attend_in_windows


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RowBatch(Batch):
    """B rows with S ids and P masked slots each, padded with zeros.

    A row is an example, or a pack of up to K examples whose [CLS] are at ``next_sentence_positions``. In a
    pack, the attention mask numbers the examples from 1, and tokens with equal numbers see each other.
    Tensors are int32, except the weights, which are float32: 1, or 0 for an unused slot. Rows that only fill
    up a batch, and missing examples of a pack, have weights 0 and the label -1.
    """

    input_ids: Tensor  # (B, S)
    token_type_ids: Tensor  # (B, S)
    attention_mask: Tensor  # (B, S)
    masked_lm_positions: Tensor  # (B, P)
    masked_lm_ids: Tensor  # (B, P)
    masked_lm_weights: Tensor  # (B, P)
    next_sentence_labels: Tensor  # (B,), packed (B, K): 1 if the second segment is random
    position_ids: Tensor | None = None  # (S,) or (B, S): for packs, and for devices that need them as input
    next_sentence_positions: Tensor | None = None  # (B, K): position of each example's [CLS], for packs
    targets: Targets = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Mapping[str, Array], targets: Mapping[str, Array]) -> "RowBatch":
        """Return a batch of these arrays. It shares their memory."""
        tensors: dict[str, Any] = {name: torch.from_numpy(array) for name, array in columns.items()}
        return cls(**tensors, targets={name: torch.from_numpy(array) for name, array in targets.items()})

    def cut(self, start: int, stop: int) -> "RowBatch":
        """Return a view of rows ``start`` to ``stop``. Position ids that all rows share are not cut."""
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
        numbers = self.attention_mask.numpy()  # a row's sequences are numbered from 1
        each = [np.count_nonzero(numbers == number, axis=1) for number in range(1, int(numbers.max()) + 1)]
        return np.concatenate(each).astype(np.int64) if each else np.zeros(0, np.int64)

    def _row_starts(self) -> Tensor:
        """Return for each row of the batch where its tokens begin in the model's matrices, which have a row
        per token. Shape (B,).
        """
        size, length = self.input_ids.shape
        return torch.arange(size, device=self.input_ids.device) * length


class PaddedSequences(Sequences):
    """B padded rows of S positions. Each row is a sequence or a pack of several.

    Query, key and value are computed by three separate products, because devices that divide the model
    themselves must see each linear layer.
    """

    one_product = False

    def __init__(self, real: Tensor, packed: bool = False) -> None:
        """Compute the attention mask.

        real: (B, S), nonzero at positions that attention may read. With ``packed`` it numbers the sequences
        from 1.
        """
        self.length, self.real = real.shape[1], real
        # padding has the number 0 and attends to padding, because a softmax over nothing is not finite
        if packed:
            self.mask = (real[:, :, None] == real[:, None, :])[:, None]
            return
        # Rows of padding attend to their first position, because a softmax over nothing is not finite.
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
            # Number the sequences over all rows. The padding of each row counts as a sequence too.
            firsts = torch.arange(len(self.real), device=self.real.device)[:, None] * (self.length + 1)
            numbers = (firsts + self.real).reshape(-1)
            return attend_in_windows(query, key, value, numbers, reach, dropout, scale)
        rows = (part.view(-1, self.length, *part.shape[1:]).transpose(1, 2) for part in (query, key, value))
        query, key, value = rows
        # omit a scale of None, because the torch 2.0 of PopTorch has no argument for it
        options: dict[str, Any] = {} if scale is None else {"scale": scale}
        attended = F.scaled_dot_product_attention(query, key, value, self.mask, dropout, **options)
        return attended.transpose(1, 2).flatten(0, 1)
