"""The examples of a training: decoded without padding, in rows that are dealt, and gathered for batches."""

from collections.abc import Iterable, Iterator
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


class DrawnMasks(Protocol):
    """Masks that are drawn when examples are gathered (``trainer.data.dynamic_masks.UnmaskedData``).

    masked: the same examples with as many masks as the largest rate draws. counts_vary: examples of one
    length may have different numbers of masks.
    """

    @property
    def masked(self) -> OpenedDataset: ...

    @property
    def counts_vary(self) -> bool: ...

    def draw(
        self, gathered: "GatheredExamples", own: OwnRows, pieces: "list[Piece]", update: int
    ) -> "GatheredExamples":
        """Return the gathered examples with masks. update: the number of the first update."""
        ...


class CompactExamples:
    """Decoded examples without padding (2 bytes an id, 4 a mask, 13 an example), to gather from.

    An example's ids are the start of a window of S ids over the ids of all, so that one copy takes them. So
    are the items of every other group that has any number of them.
    """

    def __init__(self, batches: Iterable[Any], layout: ShardLayout) -> None:
        blank = columns.blank(find_objective(layout.objective).batch_type, layout)
        held = columns.join([*batches, blank])
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
        """The tokens of each example, without the blank one at the end."""
        return np.diff(self._bounds[IDS_ENDS].astype(np.int64))[:-1]

    def take(self, numbers: Array) -> dict[str, Array]:
        """The columns of the examples of these numbers, windows of items, and counts in the place of ends."""
        starts = {name: bounds[numbers] for name, bounds in self._bounds.items()}
        found = {name: bounds[numbers + 1] - starts[name] for name, bounds in self._bounds.items()}
        for item in self._kind.columns():
            if item.name not in found:
                found[item.name] = self._values[item.name][
                    numbers if item.ends is None else starts[item.ends]
                ]
        return found


def empty_columns(layout: ShardLayout, count: int) -> dict[str, Array]:
    """The columns that CompactExamples.take returns, int32, of so many examples, whose values are zeros."""
    blank = columns.blank(find_objective(layout.objective).batch_type, layout)
    widths = {item.name: [getattr(blank, item.ends)[0]] if item.ends else [] for item in blank.columns()}
    return {name: np.zeros((count, *width), np.int32) for name, width in widths.items()}


Piece = tuple[CompactExamples, Array, Array]
"""Examples of one file, the numbers of those to take, and the place that each goes to."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GatheredExamples:
    """N examples in windows of int32, row after row. Behind an example's own ids its window holds others'.

    A row is what the order of the training deals: one example, or a pack of several.
    """

    layout: ShardLayout
    ids: Array  # (N, S)
    positions: Array  # (N, P): from the example's start
    labels: Array  # (N, P)
    lengths: Array  # (N,): the ids of each
    segment_lengths: Array  # (N,): those of the first segment
    masks: Array  # (N,)
    pair_labels: Array  # (N,)
    row_ends: Array  # (rows,): the example after each row
    targets: dict[str, Array]  # (N,) or (N, most items) each: the task's own columns
    token_targets: dict[str, Array]  # (N, S) each: those with an item for each id

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def rows(self) -> int:
        return len(self.row_ends)

    def cut(self, start: int, stop: int) -> "GatheredExamples":
        """A view of the examples of rows ``start`` to ``stop``."""
        first, last = (int(self.row_ends[row - 1]) if row else 0 for row in (start, min(stop, self.rows)))
        own: dict[str, Any] = {name: getattr(self, name)[first:last] for name in _COLUMNS}
        for name in ("targets", "token_targets"):
            own[name] = {column: values[first:last] for column, values in getattr(self, name).items()}
        return replace(self, **own, row_ends=self.row_ends[start:stop] - first)


def gather(pieces: Iterable[Piece], layout: ShardLayout, row_ends: Array) -> GatheredExamples:
    """The examples of some rows, whose places the pieces fill. row_ends: the example after each row.

    Without masks they have none, without a segment all ids are in one.
    """
    kind = find_objective(layout.objective).batch_type
    count = int(row_ends[-1]) if len(row_ends) else 0
    made = empty_columns(layout, count)
    for held, numbers, places in pieces:
        for name, values in held.take(numbers).items():
            made[name][places] = values
    own = [item for item in kind.columns() if item.group not in groups.PAIRS]
    for item in own:
        if item.ends not in (None, IDS_ENDS):  # behind an example's items stand those of others
            made[item.name] *= np.arange(made[item.name].shape[1]) < made[item.ends][:, np.newaxis]

    def column_of(group: ColumnGroup, without: Array) -> Array:
        return made[groups.only_column(kind, group).name] if groups.has_group(kind, group) else without

    lengths, none = made[IDS_ENDS], np.zeros(count, np.int32)
    no_slots = np.zeros((count, layout.max_predictions_per_seq), np.int32)
    masks = groups.Masks(no_slots, no_slots, none)
    if groups.has_group(kind, groups.MASKS):
        masks = groups.Masks(*(made[name] for name in groups.mask_names(kind)))
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
    """The rows that the order of a training deals: here the stored examples, each in a row of its own.

    ``trainer.data`` has the others. masks: those drawn when examples are gathered, None for
    stored ones. bins: length bins that a micro-batch's rows are drawn from.
    """

    data: OpenedDataset
    masks: "DrawnMasks | None" = None
    bins = 1

    @property
    def layout(self) -> ShardLayout:
        return self.data.layout

    @property
    def examples_per_row(self) -> float:
        """The examples of a row on average."""
        return 1.0

    @property
    def by_lengths(self) -> bool:
        """True if rows are dealt such that micro-batches have near equal tokens."""
        return self.data.has_lengths

    def micro_batches(self, config: Config, copies: int, examples_per_row: float) -> tuple[int, int]:
        """(rows of a micro-batch, micro-batches of a copy of the model in an update)."""
        return config.update.micro_batches(copies)

    def describe(self, update: str) -> str:
        """The rows in words, for checkpoints: a position in the order belongs to one kind of rows.

        update: its micro-batches in words.
        """
        return "as stored"

    def sizes(self) -> ExampleSizes:
        """The sizes of a sample of the rows."""
        return sample_sizes(self.data, self.masks.masked if self.masks else None)

    def decode(self, shard: Shard) -> CompactExamples:
        return CompactExamples(self.data.batches(shard), self.data.layout)

    def find(self, dealer: Dealer, start: Position) -> Iterator[OwnRows]:
        """A worker's rows from the position on, without end. DatasetError where there is no such position."""
        return dealer.find(start)

    def expand(self, own: OwnRows, pieces: list[Piece]) -> tuple[list[Piece], Array]:
        """The examples of a worker's rows, a piece for each of the parts, and the example after each row."""
        return pieces, np.arange(sum(len(part.rows) for part in own.parts)) + 1
