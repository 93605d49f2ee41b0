"""Decoded examples without padding, and rows gathered from them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bertdata.examples import columns
from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.columns import Array
from bertdata.records import ShardLayout


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


Piece = tuple[CompactExamples, Array, Array]
"""Examples of one file, the numbers of those to take, and the row that each goes to."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GatheredRows:
    """Examples in rows of int32; behind an example's own ids and masks its row holds those of others."""

    layout: ShardLayout
    ids: Array  # (count, S)
    positions: Array  # (count, P)
    labels: Array  # (count, P)
    lengths: Array  # (count,): the ids of each
    first_lengths: Array  # (count,): those of the first segment
    masks: Array  # (count,)
    next_labels: Array  # (count,)

    def __len__(self) -> int:
        return len(self.lengths)

    def cut(self, start: int, stop: int) -> "GatheredRows":
        """A view of rows ``start`` to ``stop``."""
        return GatheredRows(
            layout=self.layout,
            ids=self.ids[start:stop],
            positions=self.positions[start:stop],
            labels=self.labels[start:stop],
            lengths=self.lengths[start:stop],
            first_lengths=self.first_lengths[start:stop],
            masks=self.masks[start:stop],
            next_labels=self.next_labels[start:stop],
        )


def gather(pieces: Iterable[Piece], count: int, layout: ShardLayout) -> GatheredRows:
    """``count`` examples in rows; the pieces fill every row once."""
    ids = np.empty((count, layout.max_seq_length), np.int32)
    positions, labels = np.empty((2, count, layout.max_predictions_per_seq), np.int32)
    lengths, first_lengths, masks, next_labels = np.empty((4, count), np.int32)
    for held, rows, targets in pieces:
        start, mask_start = held.bounds[rows], held.mask_bounds[rows]
        ids[targets] = held.ids[start]
        positions[targets] = held.positions[mask_start]
        labels[targets] = held.labels[mask_start]
        lengths[targets] = held.bounds[rows + 1] - start
        masks[targets] = held.mask_bounds[rows + 1] - mask_start
        first_lengths[targets] = held.first_lengths[rows]
        next_labels[targets] = held.next_labels[rows]
    return GatheredRows(
        layout=layout,
        ids=ids,
        positions=positions,
        labels=labels,
        lengths=lengths,
        first_lengths=first_lengths,
        masks=masks,
        next_labels=next_labels,
    )
