"""Packed rows as grids: for each field an array [N, width], padded with zeros.

Layouts of fixed width are made of these (``habana.py``, ``graphcore.py``); values go by the names that
``schemas/packed.json`` has under ``of``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bertdata.examples.columns import Array, lengths, narrow
from bertdata.examples.groups import Masks, masks_of
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import find_objective
from bertdata.records import ExampleBatch, ShardLayout
from bertdata.shards.packed.check import check_packs, check_row_sizes, row_sizes
from bertdata.shards.packed.fields import RowFields
from bertdata.shards.packed.packs import PackBatch, grid_mask_room, rows_of
from bertdata.shards.rows import RecordCheck, leading

Grids = Mapping[str, Array]

RULES = {
    "ids": "padding is 0",
    "numbers": "1 in the first sequence, 2 in the second, 0 as padding",
    "segments": "zeros, then ones in each sequence, 0 as padding",
    "places": "positions count from 0 in each sequence, 0 as padding",
    "mask_places": "padding follows the last masked position",
    "originals": "padding is 0",
    "mask_numbers": "the number of the sequence at each masked position, 0 as padding",
    "cls_places": "the place of each sequence's [CLS], 0 as padding",
    "pair_labels": "padding is 0",
    "present": "1 for each sequence, else 0",
}


class GridLayout(Protocol):
    """The arrangement of sequences in rows of fixed width."""

    name: str

    def sizes(self, widths: Mapping[str, int]) -> dict[str, int]:
        """The sizes of a ShardLayout, from the widths of the grids."""
        ...

    def arrange(self, packs: PackBatch, widths: Mapping[str, int], types: Mapping[str, Any]) -> Grids:
        """The grids of checked rows."""
        ...

    def sequences(self, grids: Grids, kind: type[ExampleBatch], record: "GridCheck") -> PackBatch:
        """The sequences of grids, in a batch of that type, not yet checked.

        What contradicts them is found when they are arranged.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class GridCheck(RecordCheck):
    """Refuses rows of grids. Fields are called by their own names, which ``names`` has by value."""

    names: Mapping[str, str]

    def refuse_grid(self, wrong: Array, of: str, grid: Array, expected: str) -> None:
        """Raise ShardError for the first wrong cell of a grid."""
        if wrong.any():
            row, column = (int(place[0]) for place in np.nonzero(wrong))
            raise self.error(row, f"{self.names[of]}[{column}] is {grid[row, column]}, expected {expected}")

    def refuse_values(self, wrong: Array, used: Array, of: str, grids: Grids, expected: str) -> None:
        """The same where ``wrong`` is of the used cells alone."""
        if wrong.any():
            cells = np.zeros(used.shape, bool)
            cells[used] = wrong
            self.refuse_grid(cells, of, grids[of], expected)


LOWEST_POSITION = 1
"""Position 0 of a sequence, its [CLS], is never masked: 0 is padding, or it stands elsewhere."""


def check_grid_rows(packs: PackBatch, layout: ShardLayout, record: RecordCheck) -> None:
    """ShardError naming the first row that has no place in such grids."""
    room = grid_mask_room(layout)
    check_packs(packs, layout, record, lowest_position=LOWEST_POSITION, most_masks=room)


def read_grids(
    grids: Grids, layout: ShardLayout, arrangement: GridLayout, fields: RowFields, record: RecordCheck
) -> PackBatch:
    """The rows whose grids these are. ShardError names the first that holds anything else."""
    names = {field.of: name for name, field in fields.items()}
    kind = find_objective(layout.objective).batch_type
    packs = arrangement.sequences(grids, kind, GridCheck(name=record.name, first=record.first, names=names))
    check_packs(packs, layout, record, lowest_position=LOWEST_POSITION)
    widths = {of: grid.shape[1] for of, grid in grids.items()}
    expected = arrangement.arrange(packs, widths, {of: grid.dtype for of, grid in grids.items()})
    for of, name in names.items():
        record.refuse_cells(name, grids[of], expected[of], RULES[of])
    return PackBatch(examples=narrow(packs.examples), ends=packs.ends.astype(np.uint32))


def find_grid_layout(
    arrangement: GridLayout, widths: Mapping[str, int], objective: Objective, name: str
) -> ShardLayout:
    """The layout of grids of these widths. ShardError where no rows have them."""
    sizes: Any = arrangement.sizes(widths)
    layout = ShardLayout(packing=arrangement.name, objective=objective.name, **sizes)
    check_row_sizes(layout, name)
    return layout


@dataclass(frozen=True, kw_only=True, slots=True)
class SequencePlaces:
    """The places of a batch's sequences in their rows.

    rows: the row of each sequence. numbers: its number in the row, from 1 on. starts: of its ids in the
    batch. row_starts: of its row's ids in the batch.
    """

    rows: Array
    numbers: Array
    sizes: Array
    starts: Array
    row_starts: Array

    @classmethod
    def of(cls, packs: PackBatch) -> "SequencePlaces":
        examples: Any = packs.examples
        rows, sizes = rows_of(packs.ends), lengths(examples.ends)
        first = np.asarray(packs.ends, np.int64) - lengths(packs.ends)
        starts = np.asarray(examples.ends, np.int64) - sizes
        return cls(
            rows=rows,
            numbers=np.arange(1, len(rows) + 1) - first[rows],
            sizes=sizes,
            starts=starts,
            row_starts=starts[first][rows] if len(rows) else starts,
        )


def fill(values: Array, row_sizes: Array, width: int, kind: Any) -> Array:
    """Rows of ``row_sizes`` values each, zeros behind them."""
    grid = np.zeros((len(row_sizes), width), kind)
    grid[leading(row_sizes, width)] = values
    return grid


def arrange_masks(
    packs: PackBatch, starts: Array, numbers: Array, widths: Mapping[str, int], types: Mapping[str, Any]
) -> dict[str, Array]:
    """The grids of masked positions. starts: where position 0 of each sequence is counted in its row."""
    masks = masks_of(packs.examples)
    counts, sizes = lengths(masks.ends), row_sizes(masks.ends, packs.ends)
    values = {
        "mask_places": masks.places + np.repeat(starts, counts),
        "originals": masks.originals,
        "mask_numbers": np.repeat(numbers, counts),
    }
    return {of: fill(value, sizes, widths[of], types[of]) for of, value in values.items() if of in widths}


def number_counts(grids: Grids, used: Array, highest: Array, record: GridCheck) -> Array:
    """The counts of 1, 2, ... among the used cells of each row's ``numbers``, [N, K].

    highest: the largest number of each row. ShardError where the numbers do not ascend without a gap.
    """
    numbers, sequences = grids["numbers"], grids["pair_labels"].shape[1]
    sizes = np.count_nonzero(used, axis=1)
    ascending = "ascending numbers of sequences, then 0 as padding"
    values, rows = numbers[used].astype(np.int64), np.repeat(np.arange(len(numbers)), sizes)
    record.refuse_values(
        (values < 1) | (values > highest[rows]), used, "numbers", grids, "a sequence of the row"
    )
    record.refuse_grid(used != leading(sizes, used.shape[1]), "numbers", numbers, ascending)
    is_fall = np.diff(values, prepend=0) < 0
    is_fall[1:] &= rows[1:] == rows[:-1]
    record.refuse_values(is_fall, used, "numbers", grids, ascending)
    found = np.bincount(rows * sequences + values - 1, minlength=len(numbers) * sequences)
    counts: Array = found.reshape(-1, sequences)
    return counts


def read_masks(
    grids: Grids, used: Array, row_sizes: Array, cell_ends: Array, starts: Array, record: GridCheck
) -> Masks:
    """The masks, their places in their sequences.

    used: cells that hold a mask. row_sizes: ids of each row, without those that stand elsewhere.
    cell_ends: where each sequence's ids end, all rows' one after the other. starts: the place that
    position 0 of each sequence has or would have.
    """
    places = grids["mask_places"].astype(np.int64)
    record.refuse_grid(
        used & ((places < 0) | (places >= row_sizes[:, np.newaxis])),
        "mask_places",
        places,
        "a place in one of the row's sequences",
    )
    falls = used[:, 1:] & (places[:, 1:] <= places[:, :-1])
    record.refuse_grid(np.pad(falls, ((0, 0), (1, 0))), "mask_places", places, "ascending positions")
    cells = (places + (np.cumsum(row_sizes) - row_sizes)[:, np.newaxis])[used]
    owners = np.searchsorted(cell_ends, cells, side="right")
    counts = np.bincount(owners, minlength=len(cell_ends))
    return Masks(cells - starts[owners], grids["originals"][used], np.cumsum(counts))
