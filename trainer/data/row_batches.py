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
    """B rows with S ids each, and with P slots for masked words each.

    A row has one example, or up to K packed examples. The [CLS] of packed examples are at
    ``next_sentence_positions``. The attention mask of a packed row has a number for each token: 1 for the
    tokens of the first example, 2 for the second and so on. Tokens with equal numbers see each other. All
    tensors are int32, except the weights, which are float32. A weight is 1, or 0 for an unused slot. Rows
    that only fill up a batch, and missing examples of a packed row, have weights of 0 and the label -1.
    """

    input_ids: Tensor  # (B, S)
    token_type_ids: Tensor  # (B, S)
    attention_mask: Tensor  # (B, S)
    masked_lm_positions: Tensor  # (B, P)
    masked_lm_ids: Tensor  # (B, P)
    masked_lm_weights: Tensor  # (B, P)
    # (B,), or (B, K) for packed rows: 1 if the second segment is from another place
    next_sentence_labels: Tensor
    # (S,) or (B, S), for packed rows and for devices that need them as input
    position_ids: Tensor | None = None
    next_sentence_positions: Tensor | None = None  # (B, K), for packed rows: position of each example's [CLS]
    targets: Targets = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Mapping[str, Array], targets: Mapping[str, Array]) -> "RowBatch":
        """Make a batch from arrays, which share their memory with the batch's tensors.

        columns: the batch's fields, by name.
        targets: the columns that only the learning task uses, by name.
        """
        tensors: dict[str, Any] = {name: torch.from_numpy(array) for name, array in columns.items()}
        return cls(**tensors, targets={name: torch.from_numpy(array) for name, array in targets.items()})

    def slice_rows(self, start: int, stop: int) -> "RowBatch":
        """Return a batch with rows ``start`` to ``stop``, without ``stop``, as views. Position ids that all
        rows have in common stay whole.
        """
        cut = self.map(lambda tensor: tensor[start:stop])
        shared = self.position_ids
        return replace(cut, position_ids=shared) if shared is not None and shared.dim() == 1 else cut

    def positions(self) -> Tensor:
        """Return the position of each token in its sequence, row after row."""
        positions = self.position_ids
        if positions is None:
            positions = torch.arange(self.input_ids.shape[1], device=self.input_ids.device)
        return positions.expand(self.input_ids.shape).reshape(-1)

    def starts(self) -> Tensor:
        """Return the number of each sequence's [CLS] among the tokens of all rows."""
        if self.next_sentence_positions is None:
            return self._row_starts()
        return (self.next_sentence_positions + self._row_starts()[:, None]).reshape(-1)

    def masked(self) -> Tensor:
        """Return the number of each masked slot's token among the tokens of all rows."""
        return (self.masked_lm_positions + self._row_starts()[:, None]).reshape(-1)

    def sequences(self, attention: FlatAttention) -> "PaddedSequences":
        """Return the object that computes attention within the rows."""
        return PaddedSequences(self.attention_mask, packed=self.next_sentence_positions is not None)

    def most_tokens(self) -> int:
        """Return the number of positions in a row."""
        return self.input_ids.shape[1]

    def lengths(self) -> Array:
        """Return the number of tokens of each sequence, without padding."""
        numbers = self.attention_mask.numpy()  # numbers of the sequences in each row, counted from 1
        each = [np.count_nonzero(numbers == number, axis=1) for number in range(1, int(numbers.max()) + 1)]
        return np.concatenate(each).astype(np.int64) if each else np.zeros(0, np.int64)

    def _row_starts(self) -> Tensor:
        """Return, for each row of the batch, the number of its first token among the tokens of all rows,
        shape (B,).
        """
        size, length = self.input_ids.shape
        return torch.arange(size, device=self.input_ids.device) * length


class PaddedSequences(Sequences):
    """Object that says where the sequences of B padded rows are, and computes attention within each of them.

    A row has S positions, with one sequence or several packed sequences. Query, key and value are computed by
    three separate matrix products, because devices that divide the model themselves must see each linear
    layer.
    """

    one_product = False

    def __init__(self, real: Tensor, packed: bool = False) -> None:
        """Compute the attention mask.

        real: tensor of shape (B, S), 0 for padding. Other positions have 1, or in packed rows the number of
        their sequence, counted from 1.
        packed: whether rows have several sequences.
        """
        self.length, self.real = real.shape[1], real
        # Padding has the number 0 and attends to padding, because a softmax without any input is not finite.
        if packed:
            self.mask = (real[:, :, None] == real[:, None, :])[:, None]
            return
        # Rows of padding attend to their first position, because a softmax without any input is not finite.
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
        """Return the attention of each token to its sequence, computed by PyTorch's function."""
        if reach is not None:
            # Number the sequences of all rows. The padding of a row counts as a sequence.
            firsts = torch.arange(len(self.real), device=self.real.device)[:, None] * (self.length + 1)
            numbers = (firsts + self.real).reshape(-1)
            return attend_in_windows(query, key, value, numbers, reach, dropout, scale)
        rows = (part.view(-1, self.length, *part.shape[1:]).transpose(1, 2) for part in (query, key, value))
        query, key, value = rows
        # PopTorch uses torch 2.0, whose function has no argument ``scale``. So the argument is passed only if
        # needed.
        options: dict[str, Any] = {} if scale is None else {"scale": scale}
        attended = F.scaled_dot_product_attention(query, key, value, self.mask, dropout, **options)
        return attended.transpose(1, 2).flatten(0, 1)
