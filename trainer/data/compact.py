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
from bertdata.examples.objectives import find_objective
from bertdata.records import ExampleBatch, ShardLayout
from bertdata.shards.packed.packs import PackBatch


class CompactExamples:
    """Decoded examples without padding (2 bytes an id, 4 a mask, 13 an example), to gather from.

    An example's ids are the start of a window of S ids over the ids of all, so that one copy takes them.
    targets: the other columns of one value an example that its objective has, by name; one without masked
    words has empty masks. row_bounds: of a file of packed rows, 0 and then the example after each row; else
    None.
    """

    def __init__(self, batches: Iterable[Any], layout: ShardLayout, row_bounds: Array | None = None) -> None:
        kind = find_objective(layout.objective).batch_type
        held: Any = columns.join([*batches, columns.blank(kind, layout)])
        self.ids = sliding_window_view(held.ids, layout.max_seq_length)
        self.bounds = np.insert(held.ends, 0, 0)
        self.first_lengths = held.first_lengths
        self.targets = {name: getattr(held, name) for name in target_names(kind)}
        self.row_bounds = row_bounds
        if issubclass(kind, BertBatch):
            self.positions = sliding_window_view(held.positions, layout.max_predictions_per_seq)
            self.labels = sliding_window_view(held.labels, layout.max_predictions_per_seq)
            self.mask_bounds = np.insert(held.mask_ends, 0, 0)
            self.next_labels = held.next_labels
        else:
            self.positions = self.labels = np.zeros((1, layout.max_predictions_per_seq), np.uint16)
            self.mask_bounds = np.zeros(len(held) + 1, np.uint32)
            self.next_labels = np.zeros(len(held), np.uint8)


def target_names(kind: type[ExampleBatch]) -> list[str]:
    """The columns of one value an example that are neither of the input nor of pre-training."""
    known = {"first_lengths", "next_labels", *kind.ragged()}
    return [column.name for column in kind.columns() if column.ends is None and column.name not in known]


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
    sizes, bounds = np.zeros(count, np.int64), list[Array]()
    for held, rows, targets in pieces:
        assert held.row_bounds is not None
        bounds.append(held.row_bounds)
        sizes[targets] = held.row_bounds[rows + 1] - held.row_bounds[rows]
    ends = np.cumsum(sizes)
    expanded = [
        (held, *expand(of_file, rows, ends[targets]))
        for of_file, (held, rows, targets) in zip(bounds, pieces, strict=True)
    ]
    return expanded, ends


def expand(bounds: Array, rows: Array, ends: Array) -> tuple[Array, Array]:
    """The examples of some rows, and their places, such that each row ends at its end.

    bounds: 0, then the example after each row.
    """
    counts = bounds[rows + 1] - bounds[rows]
    beside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(bounds[rows], counts) + beside, np.repeat(ends - counts, counts) + beside


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
    targets: dict[str, Array]  # (N,) each: the task's own columns

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def rows(self) -> int:
        return len(self.row_ends)

    def narrowed(self, width: int) -> "GatheredExamples":
        """The same examples in windows of ``width`` ids, copied; none is longer."""
        layout = replace(self.layout, max_seq_length=width)
        return replace(self, ids=np.ascontiguousarray(self.ids[:, :width]), layout=layout)

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
            targets={name: values[first:last] for name, values in self.targets.items()},
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
    names = target_names(find_objective(layout.objective).batch_type)
    chosen = {name: np.empty(count, np.int32) for name in names}
    for held, numbers, targets in pieces:
        start, mask_start = held.bounds[numbers], held.mask_bounds[numbers]
        ids[targets] = held.ids[start]
        positions[targets] = held.positions[mask_start]
        labels[targets] = held.labels[mask_start]
        lengths[targets] = held.bounds[numbers + 1] - start
        masks[targets] = held.mask_bounds[numbers + 1] - mask_start
        first_lengths[targets] = held.first_lengths[numbers]
        next_labels[targets] = held.next_labels[numbers]
        for name, values in chosen.items():
            values[targets] = held.targets[name][numbers]
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
        targets=chosen,
    )
