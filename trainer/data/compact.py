"""Decoded examples without padding, and those gathered from them for batches, row after row.

A row is what the order of the training deals: one example, or a pack of several.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bertdata.examples import columns
from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.columns import Array
from bertdata.records import ShardLayout
from bertdata.shards.packed.packs import PackBatch


class CompactExamples:
    """Decoded examples without padding (2 bytes an id, 4 a mask, 13 an example), to gather from.

    An example's ids are the start of a window of S ids over the ids of all, so that one copy takes them.
    row_bounds: of a file of packed rows, 0 and then the example after each row; else None.
    """

    def __init__(self, batches: Iterable[Any], layout: ShardLayout, row_bounds: Array | None = None) -> None:
        held = columns.join([*batches, columns.blank(BertBatch, layout)])
        self.ids = sliding_window_view(held.ids, layout.max_seq_length)
        self.positions = sliding_window_view(held.positions, layout.max_predictions_per_seq)
        self.labels = sliding_window_view(held.labels, layout.max_predictions_per_seq)
        self.bounds = np.insert(held.ends, 0, 0)
        self.mask_bounds = np.insert(held.mask_ends, 0, 0)
        self.first_lengths = held.first_lengths
        self.next_labels = held.next_labels
        self.row_bounds = row_bounds


def compact_packs(packs: Iterable[PackBatch], layout: ShardLayout) -> CompactExamples:
    """The examples of packed rows, decoded, and the bounds of the rows among them."""
    found = list(packs)
    sizes = [columns.lengths(pack.ends) for pack in found]
    bounds = np.cumsum(np.concatenate([[0], *sizes]), dtype=np.int64)
    return CompactExamples([pack.examples for pack in found], layout, bounds)


def unpacked(layout: ShardLayout) -> ShardLayout:
    """The layout of the same examples, each in a row of its own."""
    return replace(layout, packing=None, sequences_per_row=1)


Piece = tuple[CompactExamples, Array, Array]
"""Examples of one file, the numbers of those to take, and the place that each goes to."""


def expand_rows(pieces: Sequence[Piece], count: int) -> tuple[list[Piece], Array]:
    """The examples of ``count`` packed rows, whose pieces hold rows; and the example after each row."""
    sizes = np.zeros(count, np.int64)
    for held, rows, targets in pieces:
        assert held.row_bounds is not None
        sizes[targets] = held.row_bounds[rows + 1] - held.row_bounds[rows]
    ends = np.cumsum(sizes)
    expanded = []
    for held, rows, targets in pieces:
        assert held.row_bounds is not None
        counts = sizes[targets]
        beside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        numbers = np.repeat(held.row_bounds[rows], counts) + beside
        places = np.repeat(ends[targets] - counts, counts) + beside
        expanded.append((held, numbers, places))
    return expanded, ends


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GatheredExamples:
    """N examples in windows of int32, row after row; behind an example's own ids its window holds others'."""

    layout: ShardLayout
    ids: Array  # (N, S)
    positions: Array  # (N, P): from the example's start
    labels: Array  # (N, P)
    lengths: Array  # (N,): the ids of each
    first_lengths: Array  # (N,): those of the first segment
    masks: Array  # (N,)
    next_labels: Array  # (N,)
    row_ends: Array  # (rows,): the example after each row

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def rows(self) -> int:
        return len(self.row_ends)

    def cut(self, start: int, stop: int) -> "GatheredExamples":
        """A view of the examples of rows ``start`` to ``stop``."""
        first, last = (int(self.row_ends[row - 1]) if row else 0 for row in (start, min(stop, self.rows)))
        return GatheredExamples(
            layout=self.layout,
            ids=self.ids[first:last],
            positions=self.positions[first:last],
            labels=self.labels[first:last],
            lengths=self.lengths[first:last],
            first_lengths=self.first_lengths[first:last],
            masks=self.masks[first:last],
            next_labels=self.next_labels[first:last],
            row_ends=self.row_ends[start:stop] - first,
        )


def gather(
    pieces: Iterable[Piece], count: int, layout: ShardLayout, row_ends: Array | None = None
) -> GatheredExamples:
    """``count`` examples; the pieces fill every place once.

    row_ends: the example after each row; by default each example is a row.
    """
    ids = np.empty((count, layout.max_seq_length), np.int32)
    positions, labels = np.empty((2, count, layout.max_predictions_per_seq), np.int32)
    lengths, first_lengths, masks, next_labels = np.empty((4, count), np.int32)
    for held, numbers, targets in pieces:
        start, mask_start = held.bounds[numbers], held.mask_bounds[numbers]
        ids[targets] = held.ids[start]
        positions[targets] = held.positions[mask_start]
        labels[targets] = held.labels[mask_start]
        lengths[targets] = held.bounds[numbers + 1] - start
        masks[targets] = held.mask_bounds[numbers + 1] - mask_start
        first_lengths[targets] = held.first_lengths[numbers]
        next_labels[targets] = held.next_labels[numbers]
    return GatheredExamples(
        layout=layout,
        ids=ids,
        positions=positions,
        labels=labels,
        lengths=lengths,
        first_lengths=first_lengths,
        masks=masks,
        next_labels=next_labels,
        row_ends=np.arange(1, count + 1) if row_ends is None else row_ends,
    )
