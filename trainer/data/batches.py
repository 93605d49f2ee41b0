"""Batches of tensors, flat or in padded rows, gathered from compactly held examples."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

from bertdata.examples import columns
from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.columns import Array
from bertdata.records import ShardLayout


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RowBatch:
    """B examples as tensors: S ids and P masked slots each, padded with zeros.

    All are int32 but the weights, which are float32: 1, or 0 for an unused slot. A padding row, which
    fills a batch of fixed shape, has weights 0 and the label -1.
    """

    input_ids: torch.Tensor  # (B, S)
    token_type_ids: torch.Tensor  # (B, S)
    attention_mask: torch.Tensor  # (B, S)
    masked_lm_positions: torch.Tensor  # (B, P)
    masked_lm_ids: torch.Tensor  # (B, P)
    masked_lm_weights: torch.Tensor  # (B, P)
    next_sentence_labels: torch.Tensor  # (B,): 1 where the second segment is random
    position_ids: torch.Tensor | None = None  # (S,) or (B, S); only for devices that need them as input

    def __len__(self) -> int:
        return len(self.input_ids)

    def map(self, function: Callable[[torch.Tensor], torch.Tensor]) -> "RowBatch":
        """A batch with the function applied to each tensor that is there."""
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        mapped: dict[str, Any] = {name: function(one) for name, one in tensors.items() if one is not None}
        return RowBatch(**mapped)

    def cut(self, start: int, stop: int) -> "RowBatch":
        """A view of examples ``start`` to ``stop``; position ids shared by all examples stay whole."""
        cut = self.map(lambda tensor: tensor[start:stop])
        shared = self.position_ids
        return replace(cut, position_ids=shared) if shared is not None and shared.dim() == 1 else cut


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FlatBatch:
    """B sequences in one row of T token ids, padded only at the end, to one of a few token budgets.

    The padding after the last sequence makes up sequences of its own, so that every row belongs to one.
    Shapes depend on the budget alone. Tensors are int32 but the weights, which are float32: 1, or 0 for an
    unused slot, whose row and id are 0. A missing sequence has no tokens, the first row 0 and the label -1.
    """

    input_ids: torch.Tensor  # (T,)
    token_type_ids: torch.Tensor  # (T,)
    position_ids: torch.Tensor  # (T,): from 0 in each sequence
    ends: torch.Tensor  # (N + 1,): 0, then the row after each sequence; N > B counts those of padding
    first_rows: torch.Tensor  # (B,): the row of each sequence's [CLS]
    masked_lm_rows: torch.Tensor  # (M,)
    masked_lm_ids: torch.Tensor  # (M,)
    masked_lm_weights: torch.Tensor  # (M,)
    next_sentence_labels: torch.Tensor  # (B,): 1 where the second segment is random
    longest: int  # most tokens that a sequence of the dataset may have
    tokens: int  # real ones, of T

    def __len__(self) -> int:
        return len(self.first_rows)

    def map(self, function: Callable[[torch.Tensor], torch.Tensor]) -> "FlatBatch":
        """A batch with the function applied to each tensor."""
        mapped: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            mapped[field.name] = function(value) if isinstance(value, torch.Tensor) else value
        return FlatBatch(**mapped)


Batch = RowBatch | FlatBatch


class CompactExamples:
    """Decoded examples without padding (2 bytes an id, 4 a mask, 13 an example), to gather rows from.

    An example's ids are the start of a window of S ids over the ids of all, so that one copy takes a row.
    """

    def __init__(self, batches: Iterable[Any], layout: ShardLayout) -> None:
        held = columns.join([*batches, columns.blank(BertBatch, layout)])
        self.ids = sliding_window_view(held.ids, layout.max_seq_length)
        self.positions = sliding_window_view(held.positions, layout.max_predictions_per_seq)
        self.labels = sliding_window_view(held.labels, layout.max_predictions_per_seq)
        self.bounds = np.insert(held.ends, 0, 0)
        self.mask_bounds = np.insert(held.mask_ends, 0, 0)
        self.first_lengths = held.first_lengths
        self.next_labels = held.next_labels


def collate(
    pieces: Iterable[tuple[CompactExamples, Array, Array]], count: int, layout: ShardLayout
) -> RowBatch:
    """A batch of ``count`` rows; each piece is (examples, their rows, the targets of the rows in the batch).

    A row that no piece fills is padding: zeros with the label -1.
    """
    ids = np.empty((count, layout.max_seq_length), np.int32)
    positions, labels = np.empty((2, count, layout.max_predictions_per_seq), np.int32)
    lengths, first_lengths, masks, next_labels = np.zeros((4, count), np.int32)
    next_labels[:] = -1
    for held, rows, targets in pieces:
        start, mask_start = held.bounds[rows], held.mask_bounds[rows]
        ids[targets] = held.ids[start]
        positions[targets] = held.positions[mask_start]
        labels[targets] = held.labels[mask_start]
        lengths[targets] = held.bounds[rows + 1] - start
        masks[targets] = held.mask_bounds[rows + 1] - mask_start
        first_lengths[targets] = held.first_lengths[rows]
        next_labels[targets] = held.next_labels[rows]
    slot = np.arange(layout.max_seq_length, dtype=np.int32)
    used = slot < lengths[:, np.newaxis]
    second = used & (slot >= first_lengths[:, np.newaxis])
    masked = np.arange(layout.max_predictions_per_seq, dtype=np.int32) < masks[:, np.newaxis]
    arrays = {
        "input_ids": np.multiply(ids, used, out=ids),
        "token_type_ids": second.astype(np.int32),
        "attention_mask": used.astype(np.int32),
        "masked_lm_positions": np.multiply(positions, masked, out=positions),
        "masked_lm_ids": np.multiply(labels, masked, out=labels),
        "masked_lm_weights": masked.astype(np.float32),
        "next_sentence_labels": next_labels,
    }
    return RowBatch(**{name: torch.from_numpy(array) for name, array in arrays.items()})
