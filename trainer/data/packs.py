"""Rows that pack several examples: rows of a packed dataset, their sizes and their masked slots."""

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
from trainer.data.budgets import ExampleSizes, decode_first_sizes
from trainer.data.examples import CompactExamples, Piece, Rows
from trainer.data.order import OwnRows

# share of a micro-batch: if the division leaves less than this share over, its rows go to the other
# micro-batches
_NEARLY_WHOLE = 0.05
# A packed row has slots for its mean number of masks plus this many standard deviations. It practically never
# needs more slots.
_DEVIATIONS = 8


class PackedExamples(CompactExamples):
    """The decoded examples of packed rows.

    row_bounds: 0, then the index of the example after each row.
    """

    def __init__(self, packs: Iterable[PackBatch], layout: ShardLayout) -> None:
        found = list(packs)
        super().__init__([pack.examples for pack in found], layout)
        sizes = [columns.compute_lengths(pack.ends) for pack in found]
        self.row_bounds = np.cumsum(np.concatenate([[0], *sizes]), dtype=np.int64)


@dataclass(frozen=True)
class FullRows(Rows):
    """Base class for rows that hold several examples each and all have about equally many tokens."""

    by_lengths = False

    def micro_batches(self, config: Config, copies: int, examples_per_row: float) -> tuple[int, int]:
        """Return (rows of a micro-batch, micro-batches per update that each copy of the model computes).

        The configured numbers count examples, unless packed_accumulation is "rows". A row has several
        examples, so there are fewer micro-batches, or fewer rows in each, to train on about as many examples.
        """
        size, count = super().micro_batches(config, copies, examples_per_row)
        if config.loading.packed_accumulation == "rows" or examples_per_row <= 1:
            return size, count
        # Keep micro-batches as large as configured and make fewer of them: batch_size 32, accumulation 8 and
        # 2 examples per row -> 4 micro-batches of 32 rows.
        packed = max(1, math.ceil(count / examples_per_row - _NEARLY_WHOLE))
        return max(1, round(size * count / (packed * examples_per_row))), packed


@dataclass(frozen=True)
class PackRows(FullRows):
    """The packed rows of a dataset, in the order in which they are dealt."""

    @property
    def examples_per_row(self) -> float:
        return self.data.examples / sum(shard.rows or 0 for shard in self.data.shards)

    def sizes(self) -> ExampleSizes:
        tokens, masks = decode_first_sizes(self.masks.masked if self.masks else self.data)
        rows = _find_first_rows(self.data, len(tokens))
        return ExampleSizes.of(np.bincount(rows, tokens), np.bincount(rows, masks))

    def decode(self, shard: Shard) -> CompactExamples:
        return PackedExamples(self.data.packs(shard), self.data.layout)

    def expand(self, own: OwnRows, pieces: list[Piece]) -> tuple[list[Piece], Array]:
        """Return the examples of packed rows, whose pieces list rows, and the example after each row."""
        # First find the number of examples of each row, which shows where each row ends in the batch.
        sizes, bounds = np.zeros(sum(len(part.rows) for part in own.parts), np.int64), list[Array]()
        for held, rows, targets in pieces:
            assert isinstance(held, PackedExamples)
            bounds.append(held.row_bounds)
            sizes[targets] = held.row_bounds[rows + 1] - held.row_bounds[rows]
        ends = np.cumsum(sizes)
        expanded = [
            (held, *find_row_examples(of_file, rows, ends[targets]))
            for of_file, (held, rows, targets) in zip(bounds, pieces, strict=True)
        ]
        return expanded, ends


def count_mask_slots(rows: Rows) -> int:
    """Return the masked slots of a packed row: the layout's number, otherwise enough for the masking rate.

    The second case is that of masks drawn while loading, which may be more than the dataset's slots.
    """
    layout = rows.layout
    known = LAYOUTS.get(layout.packing or "")
    room = known.mask_room(layout) if known and rows.masks is None else None
    if room is not None:
        return room
    tokens, masks = decode_first_sizes(rows.masks.masked if rows.masks else rows.data)
    if not masks.any():
        return 0
    mean = float(np.max((masks - 0.5) / tokens)) * layout.max_seq_length  # mean number of masks in a full row
    by_rate = math.ceil(mean + layout.sequences_per_row / 2) + 1
    if rows.masks is not None and rows.masks.counts_vary:
        by_rate += math.ceil(_DEVIATIONS * math.sqrt(mean))
    return min(layout.sequences_per_row * layout.max_predictions_per_seq, by_rate)


def _find_first_rows(data: OpenedDataset, examples: int) -> Array:
    """Return the packed row of each of the first examples."""
    sizes, seen = list[Array](), 0
    for packs in (packs for shard in data.shards for packs in data.packs(shard)):
        sizes.append(columns.compute_lengths(packs.ends))
        seen += int(packs.ends[-1]) if len(packs) else 0
        if seen >= examples:
            break
    counts = np.concatenate(sizes)
    return np.repeat(np.arange(len(counts)), counts)[:examples]


def find_row_examples(bounds: Array, rows: Array, ends: Array) -> tuple[Array, Array]:
    """Return the examples of some rows, and places for them such that each row ends at its end.

    bounds: 0, then the index of the example after each row. ends: place after each row's last example.
    """
    # bounds [0, 2, 5], rows [1], ends [3] -> examples [2, 3, 4] at places [0, 1, 2]
    counts = bounds[rows + 1] - bounds[rows]
    beside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(bounds[rows], counts) + beside, np.repeat(ends - counts, counts) + beside
