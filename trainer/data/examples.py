"""Training examples on their way to a batch: decoded without padding, dealt to workers in rows, and gathered
into arrays.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.examples import columns, groups
from bertdata.examples.columns import Array
from bertdata.examples.objectives import find_objective
from bertdata.records import IDS_ENDS, ColumnGroup, ShardLayout
from trainer.config.settings import Config
from trainer.data.budgets import ExampleSizes, sample_sizes
from trainer.data.order import Dealer, OwnRows, Position

_COLUMNS = ("ids", "positions", "labels", "lengths", "segment_lengths", "masks", "pair_labels")


class MaskDrawing(Protocol):
    """Interface of datasets whose masks are drawn when examples are gathered (``UnmaskedData``).

    masked: the same examples with as many masks as the largest rate draws.
    counts_vary: examples of equal length may have different numbers of masks.
    """

    @property
    def masked(self) -> OpenedDataset: ...

    @property
    def counts_vary(self) -> bool: ...

    def draw(
        self, gathered: "GatheredExamples", own: OwnRows, pieces: "list[Piece]", update: int
    ) -> "GatheredExamples":
        """Return the gathered examples with masks.

        own: rows of this worker that were gathered. pieces: the same rows by file. update: number of the
        first update that the rows belong to.
        """
        ...


class CompactExamples:
    """The decoded examples of a file, without padding. They take 2 bytes per id, 4 per mask and 13 per
    example.

    The ids of all examples are stored end to end. sliding_window_view makes a window of S ids from each
    start, so that one NumPy copy takes many examples: the ids 7 8 9 1 2 have, with S = 3, the windows 7 8 9,
    8 9 1 and 9 1 2. A window of a short example also contains ids of the next example, which the length
    excludes. Other columns with a varying number of items work the same way.
    """

    def __init__(self, batches: Iterable[Any], layout: ShardLayout) -> None:
        blank = columns.make_blank_example(find_objective(layout.objective).batch_type, layout)
        held = columns.join_batches([*batches, blank])
        self._kind = type(blank)
        self._bounds = {ends: np.insert(getattr(held, ends), 0, 0) for ends in blank.ragged()}
        self._values = {
            item.name: getattr(held, item.name)
            if item.ends is None
            else sliding_window_view(getattr(held, item.name), getattr(blank, item.ends)[0])
            for item in blank.columns()
            if item.name not in self._bounds
        }

    @property
    def lengths(self) -> Array:
        """The tokens of each example."""
        # The last end belongs to a blank example, which only makes room for the last window.
        return np.diff(self._bounds[IDS_ENDS].astype(np.int64))[:-1]

    def take(self, numbers: Array) -> dict[str, Array]:
        """Return the columns of some examples.

        Columns with several items per example have windows of fixed width, and a column with the number of
        items instead of end offsets.

        numbers: indices of the examples in the file.
        """
        starts = {name: bounds[numbers] for name, bounds in self._bounds.items()}
        found = {name: bounds[numbers + 1] - starts[name] for name, bounds in self._bounds.items()}
        for item in self._kind.columns():
            if item.name not in found:
                found[item.name] = self._values[item.name][
                    numbers if item.ends is None else starts[item.ends]
                ]
        return found


def make_empty_columns(layout: ShardLayout, count: int) -> dict[str, Array]:
    """Return zeros in the columns and shapes that ``CompactExamples.take`` returns for ``count`` examples."""
    blank = columns.make_blank_example(find_objective(layout.objective).batch_type, layout)
    widths = {item.name: [getattr(blank, item.ends)[0]] if item.ends else [] for item in blank.columns()}
    return {name: np.zeros((count, *width), np.int32) for name, width in widths.items()}


Piece = tuple[CompactExamples, Array, Array]
"""Examples of one file: the decoded file, the numbers of the examples to take, and the place of each in the
batch.
"""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GatheredExamples:
    """The examples of some rows, copied into int32 arrays with N windows of fixed width. Behind an example's
    ids, its window may contain ids of other examples.

    A row is what the order of the training deals to the workers: an example, or several that are packed.
    """

    layout: ShardLayout
    ids: Array  # (N, S): token ids
    positions: Array  # (N, P): positions of the masked tokens, from the example's start
    labels: Array  # (N, P): original ids of the masked tokens
    lengths: Array  # (N,): number of ids
    segment_lengths: Array  # (N,): number of ids in the first segment
    masks: Array  # (N,): number of masked tokens
    pair_labels: Array  # (N,): label of the sentence pair
    row_ends: Array  # (rows,): index of the example after each row
    targets: dict[str, Array]  # (N,) or (N, most items) each: the task's columns
    token_targets: dict[str, Array]  # (N, S) each: the task's columns with an item per id

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def rows(self) -> int:
        return len(self.row_ends)

    def cut(self, start: int, stop: int) -> "GatheredExamples":
        """Return a view of the examples of rows ``start`` to ``stop``."""
        first, last = (int(self.row_ends[row - 1]) if row else 0 for row in (start, min(stop, self.rows)))
        own: dict[str, Any] = {name: getattr(self, name)[first:last] for name in _COLUMNS}
        for name in ("targets", "token_targets"):
            own[name] = {column: values[first:last] for column, values in getattr(self, name).items()}
        return replace(self, **own, row_ends=self.row_ends[start:stop] - first)


def gather_examples(pieces: Iterable[Piece], layout: ShardLayout, row_ends: Array) -> GatheredExamples:
    """Copy the examples of some rows from their files into arrays, each to its place.

    row_ends: index of the example after each row. Examples without stored masks get none, and without
    segments all ids are in the first.
    """
    kind = find_objective(layout.objective).batch_type
    count = int(row_ends[-1]) if len(row_ends) else 0
    made = make_empty_columns(layout, count)
    for held, numbers, places in pieces:
        for name, values in held.take(numbers).items():
            made[name][places] = values
    own = [item for item in kind.columns() if item.group not in groups.PAIRS]
    for item in own:
        # behind the end of its items, an example's window contains items of other examples, which are removed
        if item.ends not in (None, IDS_ENDS):
            made[item.name] *= np.arange(made[item.name].shape[1]) < made[item.ends][:, np.newaxis]

    def column_of(group: ColumnGroup, without: Array) -> Array:
        return made[groups.find_column(kind, group).name] if groups.has_group(kind, group) else without

    lengths, none = made[IDS_ENDS], np.zeros(count, np.int32)
    no_slots = np.zeros((count, layout.max_predictions_per_seq), np.int32)
    masks = groups.Masks(no_slots, no_slots, none)
    if groups.has_group(kind, groups.MASKS):
        masks = groups.Masks(*(made[name] for name in groups.find_mask_names(kind)))
    return GatheredExamples(
        layout=layout,
        ids=made["ids"],
        positions=masks.places,
        labels=masks.originals,
        lengths=lengths,
        segment_lengths=column_of(groups.SEGMENT, lengths),
        masks=masks.ends,
        pair_labels=column_of(groups.PAIR_LABEL, none),
        row_ends=row_ends,
        targets={item.name: made[item.name] for item in own if item.ends != IDS_ENDS},
        token_targets={item.name: made[item.name] for item in own if item.ends == IDS_ENDS},
    )


@dataclass(frozen=True)
class Rows:
    """The rows of a training, which its order (``trainer.data.order``) deals to the workers. In this class
    each stored example is a row.

    Other modules of ``trainer.data`` have subclasses with packed rows or other orders.
    masks: draws masks when examples are gathered, or None to use the stored masks.
    bins: length bins that a micro-batch's rows are drawn from.
    """

    data: OpenedDataset
    masks: "MaskDrawing | None" = None
    bins = 1

    @property
    def layout(self) -> ShardLayout:
        return self.data.layout

    @property
    def examples_per_row(self) -> float:
        """The average number of examples per row."""
        return 1.0

    @property
    def by_lengths(self) -> bool:
        """True if rows are dealt by length, so that micro-batches have nearly equal tokens."""
        return self.data.has_lengths

    def micro_batches(self, config: Config, copies: int, examples_per_row: float) -> tuple[int, int]:
        """Return (rows of a micro-batch, micro-batches per update that each copy of the model computes), as
        configured.
        """
        return config.update.micro_batches(copies)

    def describe(self, update: str) -> str:
        """Describe the rows in words for checkpoints.

        A resume refuses a position in rows with another description.
        update: the micro-batches of an update in words.
        """
        return "as stored"

    def sizes(self) -> ExampleSizes:
        """Return the sizes (tokens and masked slots) of a sample of the rows."""
        return sample_sizes(self.data, self.masks.masked if self.masks else None)

    def decode(self, shard: Shard) -> CompactExamples:
        return CompactExamples(self.data.batches(shard), self.data.layout)

    def find(self, dealer: Dealer, start: Position) -> Iterator[OwnRows]:
        """Yield a worker's rows in an endless sequence that begins at the position.

        Raises DatasetError if there is no such position.
        """
        return dealer.find(start)

    def find_sized(
        self, dealer: Dealer, start: Position, update: int, size_of: Callable[[int], int]
    ) -> Iterator[OwnRows] | None:
        """Yield a worker's rows of updates with different sizes, or return None.

        Returns None for rows that do not depend on the sizes of earlier updates. Such rows are found by
        ``find`` for one size after the other.
        update: number of the first update. size_of: returns the micro-batches of an update.
        """
        return None

    def expand(self, own: OwnRows, pieces: list[Piece]) -> tuple[list[Piece], Array]:
        """Return the examples in a worker's rows, grouped by file, and for each row the index of the example
        after it.
        """
        return pieces, np.arange(sum(len(part.rows) for part in own.parts)) + 1
