"""Rows that are packs of several examples: those of a dataset that was packed, and their sizes."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.examples import columns
from bertdata.examples.columns import Array
from bertdata.records import ShardLayout
from bertdata.shards.packed.layouts import LAYOUTS
from bertdata.shards.packed.packs import PackBatch
from trainer.config.settings import Config
from trainer.data.budgets import ExampleSizes, first_examples
from trainer.data.examples import CompactExamples, Piece, Rows
from trainer.data.order import OwnRows

_NEARLY_WHOLE = 0.05  # of a micro-batch: rows that are spread over the others
_DEVIATIONS = 8  # from the mean number of drawn masks: never seen


class PackedExamples(CompactExamples):
    """The decoded examples of packed rows. row_bounds: 0, then the example after each row."""

    def __init__(self, packs: Iterable[PackBatch], layout: ShardLayout) -> None:
        found = list(packs)
        super().__init__([pack.examples for pack in found], layout)
        sizes = [columns.lengths(pack.ends) for pack in found]
        self.row_bounds = np.cumsum(np.concatenate([[0], *sizes]), dtype=np.int64)


@dataclass(frozen=True)
class FullRows(Rows):
    """Base of rows of several examples each, which all hold about as many tokens."""

    by_lengths = False

    def micro_batches(self, config: Config, copies: int, examples_per_row: float) -> tuple[int, int]:
        """Unless packed_accumulation is "rows", the configured numbers count examples: then there are fewer
        micro-batches, of about as many rows as examples are asked for, or fewer rows.
        """
        size, count = super().micro_batches(config, copies, examples_per_row)
        if config.loading.packed_accumulation == "rows" or examples_per_row <= 1:
            return size, count
        packed = max(1, math.ceil(count / examples_per_row - _NEARLY_WHOLE))
        return max(1, round(size * count / (packed * examples_per_row))), packed


@dataclass(frozen=True)
class PackRows(FullRows):
    """The packed rows of a dataset, dealt in their order."""

    @property
    def examples_per_row(self) -> float:
        return self.data.examples / sum(shard.rows or 0 for shard in self.data.shards)

    def sizes(self) -> ExampleSizes:
        tokens, masks = first_examples(self.masks.masked if self.masks else self.data)
        rows = _first_rows(self.data, len(tokens))
        return ExampleSizes.of(np.bincount(rows, tokens), np.bincount(rows, masks))

    def decode(self, shard: Shard) -> CompactExamples:
        return PackedExamples(self.data.packs(shard), self.data.layout)

    def expand(self, own: OwnRows, pieces: list[Piece]) -> tuple[list[Piece], Array]:
        """The examples of packed rows, whose pieces hold rows, and the example after each row."""
        sizes, bounds = np.zeros(sum(len(part.rows) for part in own.parts), np.int64), list[Array]()
        for held, rows, targets in pieces:
            assert isinstance(held, PackedExamples)
            bounds.append(held.row_bounds)
            sizes[targets] = held.row_bounds[rows + 1] - held.row_bounds[rows]
        ends = np.cumsum(sizes)
        expanded = [
            (held, *expand(of_file, rows, ends[targets]))
            for of_file, (held, rows, targets) in zip(bounds, pieces, strict=True)
        ]
        return expanded, ends


def mask_slots(rows: Rows) -> int:
    """The masked slots of a packed row: those of its layout where it says so, else what the rate allows.

    Masks that are drawn at load need not fit into the layout's.
    """
    layout = rows.layout
    known = LAYOUTS.get(layout.packing or "")
    room = known.mask_room(layout) if known and rows.masks is None else None
    if room is not None:
        return room
    tokens, masks = first_examples(rows.masks.masked if rows.masks else rows.data)
    if not masks.any():
        return 0
    mean = float(np.max((masks - 0.5) / tokens)) * layout.max_seq_length  # of a row that is full
    by_rate = math.ceil(mean + layout.sequences_per_row / 2) + 1
    if rows.masks is not None and rows.masks.counts_vary:
        by_rate += math.ceil(_DEVIATIONS * math.sqrt(mean))
    return min(layout.sequences_per_row * layout.max_predictions_per_seq, by_rate)


def _first_rows(data: OpenedDataset, examples: int) -> Array:
    """The packed row of each of the first examples."""
    sizes, seen = list[Array](), 0
    for packs in (packs for shard in data.shards for packs in data.packs(shard)):
        sizes.append(columns.lengths(packs.ends))
        seen += int(packs.ends[-1]) if len(packs) else 0
        if seen >= examples:
            break
    counts = np.concatenate(sizes)
    return np.repeat(np.arange(len(counts)), counts)[:examples]


def expand(bounds: Array, rows: Array, ends: Array) -> tuple[Array, Array]:
    """The examples of some rows, and their places, such that each row ends at its end.

    bounds: 0, then the example after each row.
    """
    counts = bounds[rows + 1] - bounds[rows]
    beside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(bounds[rows], counts) + beside, np.repeat(ends - counts, counts) + beside
