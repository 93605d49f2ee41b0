"""The rows of a packed dataset, which have several examples each, and their numbers of masked words."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.examples import columns
from bertdata.examples.columns import Array
from bertdata.records import ShardLayout
from bertdata.shards.packed.layouts import LAYOUTS
from bertdata.shards.packed.packs import PackBatch, join_packs, slice_packs
from trainer.config.settings import Config
from trainer.data.budgets import ExampleSizes, decode_first_sizes
from trainer.data.examples import (
    CompactExamples,
    NumberedExamples,
    Piece,
    Rows,
    decode_in_chunks,
    shrink_batches,
)
from trainer.data.order import WorkerRows

# If dividing the rows leaves a last micro-batch with less than this fraction of the rows of the others, its
# rows are given to the others.
_NEARLY_WHOLE = 0.05
# A packed row has slots for the mean number of masked words in a row, plus this number of standard
# deviations. More are practically never needed.
_DEVIATIONS = 8


class PackedExamples(CompactExamples):
    """The decoded examples of a file of packed rows.

    row_bounds: 0, then for each row the index of the example after its last.
    """

    def __init__(self, packs: Iterable[PackBatch], layout: ShardLayout) -> None:
        found = list(packs)
        super().__init__([pack.examples for pack in found], layout)
        sizes = [columns.compute_lengths(pack.ends) for pack in found]
        self.row_bounds = np.cumsum(np.concatenate([[0], *sizes]), dtype=np.int64)


@dataclass(frozen=True)
class FullRows(Rows):
    """Base class for packed rows: each row has several examples, and all have about equally many tokens."""

    by_lengths = False

    def micro_batches(self, config: Config, copies: int, examples_per_row: float) -> tuple[int, int]:
        """Return two numbers: rows in a micro-batch, and micro-batches that each copy of the model computes
        in an update.

        The configured numbers count examples, unless packed_accumulation is "rows". As a row has several
        examples, there are fewer micro-batches, or fewer rows in each. So an update has about as many
        examples as configured.
        """
        size, count = super().micro_batches(config, copies, examples_per_row)
        if config.loading.packed_accumulation == "rows" or examples_per_row <= 1:
            return size, count
        # Micro-batches keep their configured number of rows, but there are fewer of them. For example,
        # batch_size 32 and accumulation 8 give 4 micro-batches of 32 rows if a row has 2 examples.
        packed = max(1, math.ceil(count / examples_per_row - _NEARLY_WHOLE))
        return max(1, round(size * count / (packed * examples_per_row))), packed


@dataclass(frozen=True)
class PackRows(FullRows):
    """The packed rows of a dataset, on which a training trains."""

    @property
    def examples_per_row(self) -> float:
        """The average number of examples in a row of the dataset."""
        return self.data.examples / sum(shard.rows or 0 for shard in self.data.shards)

    def sizes(self) -> ExampleSizes:
        """Return the sizes of the first rows of the dataset."""
        tokens, masks = decode_first_sizes(self.masks.masked if self.masks else self.data)
        rows = _find_first_rows(self.data, len(tokens))
        return ExampleSizes.of(np.bincount(rows, tokens), np.bincount(rows, masks))

    def decode(self, shard: Shard) -> CompactExamples:
        """Return the decoded examples of a shard, and the bounds of its rows."""
        return PackedExamples(self.data.packs(shard), self.data.layout)

    def decode_chunks(self, shard: Shard, sizes: Sequence[int]) -> Iterator[CompactExamples]:
        """Return an iterator over the decoded examples of a shard, chunk by chunk, with the bounds of their
        rows.

        sizes: number of rows of each chunk. Together they are all rows of the shard.
        """
        return decode_in_chunks(
            shrink_batches(self.data, sizes).packs(shard),
            sizes,
            lambda held: PackedExamples(held, self.data.layout),
            cut=slice_packs,
            join=join_packs,
        )

    def list_examples(self, own: WorkerRows, pieces: list[Piece]) -> tuple[list[Piece], Array]:
        """Return the examples in a worker's rows, file by file, and for each row the index of the example
        after its last.

        pieces: the rows, file by file.
        """
        # First find the number of examples in each row, from which follows where the row ends in the batch.
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

    def number_examples(self, own: WorkerRows, pieces: list[Piece]) -> list[NumberedExamples]:
        """Return the numbers of the examples in a worker's rows, for each part of ``own``.

        pieces: the examples as ``list_examples`` returns them, file by file.
        """
        return [(taken + held.first_example, places) for held, taken, places in pieces]


def count_mask_slots(rows: Rows) -> int:
    """Return the number of slots for masked words that a packed row needs in a batch.

    For a packed dataset with stored masks, the layout has this number. Otherwise it is estimated from a
    sample of examples. Masks that are drawn while loading may be more than the stored ones.
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
    """Return, for each of the first examples of the dataset, the number of its packed row."""
    sizes, seen = list[Array](), 0
    for packs in (packs for shard in data.shards for packs in data.packs(shard)):
        sizes.append(columns.compute_lengths(packs.ends))
        seen += int(packs.ends[-1]) if len(packs) else 0
        if seen >= examples:
            break
    counts = np.concatenate(sizes)
    return np.repeat(np.arange(len(counts)), counts)[:examples]


def find_row_examples(bounds: Array, rows: Array, ends: Array) -> tuple[Array, Array]:
    """Return the indices of the examples in some rows, and the place of each in the result.

    bounds: 0, then for each row of the file the index of the example after its last.
    rows: numbers of the rows.
    ends: for each of these rows, the place after its last example in the result.
    """
    # For example, bounds [0, 2, 5], rows [1] and ends [3] give the examples [2, 3, 4] at places [0, 1, 2].
    counts = bounds[rows + 1] - bounds[rows]
    beside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(bounds[rows], counts) + beside, np.repeat(ends - counts, counts) + beside
