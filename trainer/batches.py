"""Batches of padded tensors, gathered from compact columns."""

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
class Batch:
    """B examples as tensors: S ids and P masked slots each, padded with zeros.

    int32, but for the weights, which are float32: 1, or 0 for a slot that masks nothing. A row that
    only fills up a batch of fixed shape has weights 0 and the label -1.
    """

    input_ids: torch.Tensor  # (B, S)
    token_type_ids: torch.Tensor  # (B, S)
    attention_mask: torch.Tensor  # (B, S)
    masked_lm_positions: torch.Tensor  # (B, P)
    masked_lm_ids: torch.Tensor  # (B, P)
    masked_lm_weights: torch.Tensor  # (B, P)
    next_sentence_labels: torch.Tensor  # (B,): 1 where the second segment is random
    position_ids: torch.Tensor | None = None  # (S,) or (B, S); for a device that wants even these put in

    def __len__(self) -> int:
        return len(self.input_ids)

    def map(self, function: Callable[[torch.Tensor], torch.Tensor]) -> "Batch":
        """The batch of what the function makes of each tensor that is there."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        made: dict[str, Any] = {name: function(one) for name, one in found.items() if one is not None}
        return Batch(**made)

    def cut(self, start: int, stop: int) -> "Batch":
        """Examples ``start`` to ``stop``, not copied; position ids for all of them stay."""
        cut, shared = self.map(lambda tensor: tensor[start:stop]), self.position_ids
        return replace(cut, position_ids=shared) if shared is not None and shared.dim() == 1 else cut


class Columns:
    """Examples held compactly (2 bytes an id, 4 a mask, 13 an example), from which rows are gathered.

    An example's ids are the head of a window of S ids on all ids, so that a row is one copy.
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


def collate(pieces: Iterable[tuple[Columns, Array, Array]], count: int, layout: ShardLayout) -> Batch:
    """``count`` examples: of each piece (columns, rows, places) the rows, at their places in the batch.

    A place that no piece fills is a row of zeros with the label -1.
    """
    ids = np.empty((count, layout.max_seq_length), np.int32)
    positions, labels = np.empty((2, count, layout.max_predictions_per_seq), np.int32)
    lengths, first_lengths, masks, next_labels = np.zeros((4, count), np.int32)
    next_labels[:] = -1
    for held, rows, places in pieces:
        start, mask_start = held.bounds[rows], held.mask_bounds[rows]
        ids[places] = held.ids[start]
        positions[places] = held.positions[mask_start]
        labels[places] = held.labels[mask_start]
        lengths[places] = held.bounds[rows + 1] - start
        masks[places] = held.mask_bounds[rows + 1] - mask_start
        first_lengths[places] = held.first_lengths[rows]
        next_labels[places] = held.next_labels[rows]
    place = np.arange(layout.max_seq_length, dtype=np.int32)
    used = place < lengths[:, np.newaxis]
    second = used & (place >= first_lengths[:, np.newaxis])
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
    return Batch(**{name: torch.from_numpy(array) for name, array in arrays.items()})
