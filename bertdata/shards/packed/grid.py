"""Packed rows as grids. A grid is an array of shape (rows, width) for a field, padded with zeros.

The layouts of fixed width (``habana.py``, ``graphcore.py``) are built on grids. The key of a grid says what
it stores, such as ids or mask_places. ``schemas/packed.json`` lists these keys under ``of``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bertdata.examples.columns import Array, compute_lengths, convert_to_item_types
from bertdata.examples.groups import Masks, get_masks
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import find_objective
from bertdata.records import ExampleBatch, ShardLayout
from bertdata.shards.packed.check import check_packs, check_row_sizes, count_items_per_row
from bertdata.shards.packed.fields import RowFields
from bertdata.shards.packed.packs import PackBatch, count_grid_mask_slots, find_rows
from bertdata.shards.rows import RecordCheck, make_leading_mask

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
    """Interface of a layout that arranges sequences (the examples of a row) in rows of fixed width."""

    name: str

    def find_sizes(self, widths: Mapping[str, int]) -> dict[str, int]:
        """Return sizes of a ShardLayout by name, such as sequences_per_row, for grids of these widths.

        widths: width of each grid by its key.
        """
        ...

    def arrange_rows(self, packs: PackBatch, widths: Mapping[str, int], types: Mapping[str, Any]) -> Grids:
        """Convert checked packed rows to grids.

        widths: width of each grid by its key.
        types: item type of each grid by its key.
        """
        ...

    def read_rows(self, grids: Grids, batch_type: type[ExampleBatch], record: "GridCheck") -> PackBatch:
        """Convert grids to packed rows. Contradictions within the grids are not found here.

        The caller finds them by converting the result to grids again, which must be the same.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class GridCheck(RecordCheck):
    """Check of packed rows whose errors can also name a wrong cell, which is one value of a grid.

    names: name of the field in the file, for the key of each grid.
    """

    names: Mapping[str, str]

    def refuse_grid(self, wrong: Array, of: str, grid: Array, expected: str) -> None:
        """Raise ShardError for the first wrong cell of a grid.

        wrong: True for the wrong cells.
        of: key of the grid.
        expected: what the error says that the cell should be.
        """
        if wrong.any():
            row, column = (int(place[0]) for place in np.nonzero(wrong))
            raise self.error(row, f"{self.names[of]}[{column}] is {grid[row, column]}, expected {expected}")

    def refuse_values(self, wrong: Array, used: Array, of: str, grids: Grids, expected: str) -> None:
        """Raise ShardError for the first wrong cell of a grid, if only its used cells were checked.

        wrong: a boolean for each cell that ``used`` marks.
        used: True for the cells that were checked.
        of: key of the grid.
        expected: what the error says that the cell should be.
        """
        if wrong.any():
            cells = np.zeros(used.shape, bool)
            cells[used] = wrong
            self.refuse_grid(cells, of, grids[of], expected)


LOWEST_POSITION = 1
"""The lowest position that may be masked. Position 0 is [CLS], which is never masked.

Neither layout could store a mask there. Habana's uses 0 as padding, and Graphcore's stores [CLS] at the row's
end.
"""


def check_grid_rows(packs: PackBatch, layout: ShardLayout, record: RecordCheck) -> None:
    """Raise ShardError for the first packed row that cannot be stored in the layout's grids."""
    room = count_grid_mask_slots(layout)
    check_packs(packs, layout, record, lowest_position=LOWEST_POSITION, most_masks=room)


def read_grids(
    grids: Grids, layout: ShardLayout, arrangement: GridLayout, fields: RowFields, record: RecordCheck
) -> PackBatch:
    """Convert grids to packed rows and check them.

    Raises ShardError for the first row whose grids contradict each other, or have values where padding should
    be.

    arrangement: the layout in which the grids are arranged.
    fields: the fields of the file, by name.
    """
    names = {field.of: name for name, field in fields.items()}
    kind = find_objective(layout.objective).batch_type
    # Reading uses only part of the cells. The result arranged again must give the same grids. This finds
    # every contradiction and every value in the padding, without a separate check for each field.
    packs = arrangement.read_rows(grids, kind, GridCheck(name=record.name, first=record.first, names=names))
    check_packs(packs, layout, record, lowest_position=LOWEST_POSITION)
    widths = {of: grid.shape[1] for of, grid in grids.items()}
    expected = arrangement.arrange_rows(packs, widths, {of: grid.dtype for of, grid in grids.items()})
    for of, name in names.items():
        record.refuse_cells(name, grids[of], expected[of], RULES[of])
    return PackBatch(examples=convert_to_item_types(packs.examples), ends=packs.ends.astype(np.uint32))


def find_grid_layout(
    arrangement: GridLayout, widths: Mapping[str, int], objective: Objective, name: str
) -> ShardLayout:
    """Return the ShardLayout of packed rows from the widths of their grids.

    Raises ShardError if no packed rows can have such widths.

    widths: width of each grid by its key.
    name: the file, for the error.
    """
    sizes: Any = arrangement.find_sizes(widths)
    layout = ShardLayout(packing=arrangement.name, objective=objective.name, **sizes)
    check_row_sizes(layout, name)
    return layout


@dataclass(frozen=True, kw_only=True, slots=True)
class SequencePlaces:
    """Places of the sequences (examples) in a batch of packed rows. Every array has one item per sequence.

    rows: index of the sequence's row.
    numbers: number of the sequence in its row, from 1.
    sizes: number of ids in the sequence.
    starts: index of the sequence's first id in the batch.
    row_starts: index of the row's first id in the batch.
    """

    rows: Array
    numbers: Array
    sizes: Array
    starts: Array
    row_starts: Array

    @classmethod
    def from_packs(cls, packs: PackBatch) -> "SequencePlaces":
        """Find where each sequence is in a batch of packed rows."""
        examples: Any = packs.examples
        # For example, rows that end at the sequences [2, 3] with sequences of [3, 4, 5] ids give rows [0, 0,
        # 1], numbers [1, 2, 1], starts [0, 3, 7] and row_starts [0, 0, 7].
        rows, sizes = find_rows(packs.ends), compute_lengths(examples.ends)
        first = np.asarray(packs.ends, np.int64) - compute_lengths(packs.ends)
        starts = np.asarray(examples.ends, np.int64) - sizes
        return cls(
            rows=rows,
            numbers=np.arange(1, len(rows) + 1) - first[rows],
            sizes=sizes,
            starts=starts,
            row_starts=starts[first][rows] if len(rows) else starts,
        )


def fill_grid(values: Array, row_sizes: Array, width: int, kind: Any) -> Array:
    """Return a grid of the values. Row i takes the next ``row_sizes[i]`` of them, followed by zeros.

    width: number of cells in a row.
    kind: item type of the grid.
    """
    grid = np.zeros((len(row_sizes), width), kind)
    grid[make_leading_mask(row_sizes, width)] = values
    return grid


def arrange_masks(
    packs: PackBatch, starts: Array, numbers: Array, widths: Mapping[str, int], types: Mapping[str, Any]
) -> dict[str, Array]:
    """Return the grids of the masks, by key: masked positions in the row, original ids and sequence numbers.

    starts: for each sequence, the place in the row from which its masked positions count.
    numbers: for each sequence, its number in its row.
    widths: width of each grid by its key. Only these grids are made.
    types: item type of each grid by its key.
    """
    masks = get_masks(packs.examples)
    counts, sizes = compute_lengths(masks.ends), count_items_per_row(masks.ends, packs.ends)
    values = {
        "mask_places": masks.places + np.repeat(starts, counts),
        "originals": masks.originals,
        "mask_numbers": np.repeat(numbers, counts),
    }
    return {
        of: fill_grid(value, sizes, widths[of], types[of]) for of, value in values.items() if of in widths
    }


def count_cells_by_number(grids: Grids, used: Array, highest: Array, record: GridCheck) -> Array:
    """Return how many cells each sequence of each row has, as an array of shape (rows, most sequences).

    Raises ShardError unless the sequence numbers in a row's used cells are 1, 2 and so on, ascending and
    without gaps.

    used: True for the cells that belong to a sequence.
    highest: largest allowed sequence number of each row.
    """
    numbers, sequences = grids["numbers"], grids["pair_labels"].shape[1]
    sizes = np.count_nonzero(used, axis=1)
    ascending = "ascending numbers of sequences, then 0 as padding"
    values, rows = numbers[used].astype(np.int64), np.repeat(np.arange(len(numbers)), sizes)
    record.refuse_values(
        (values < 1) | (values > highest[rows]), used, "numbers", grids, "a sequence of the row"
    )
    record.refuse_grid(used != make_leading_mask(sizes, used.shape[1]), "numbers", numbers, ascending)
    is_fall = np.diff(values, prepend=0) < 0
    is_fall[1:] &= rows[1:] == rows[:-1]
    record.refuse_values(is_fall, used, "numbers", grids, ascending)
    found = np.bincount(rows * sequences + values - 1, minlength=len(numbers) * sequences)
    counts: Array = found.reshape(-1, sequences)
    return counts


def read_masks(
    grids: Grids, used: Array, row_sizes: Array, cell_ends: Array, starts: Array, record: GridCheck
) -> Masks:
    """Return the masks of all sequences, with positions that count from the start of their sequence.

    used: True for the cells that hold a mask.
    row_sizes: number of ids in each row. [CLS] tokens that are stored at the row's end are not counted.
    cell_ends: for each sequence, the number of ids in all rows up to its end, counted in the same way.
    starts: for each sequence, the number of ids before its position 0, counted in the same way.
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
    # Number the cells with ids through all rows. With row sizes [5, 3], for example, place 1 of row 1 is cell
    # 6. cell_ends says to which sequence a cell belongs. The cell's number minus the sequence's start is the
    # masked position in the sequence.
    cells = (places + (np.cumsum(row_sizes) - row_sizes)[:, np.newaxis])[used]
    owners = np.searchsorted(cell_ends, cells, side="right")
    counts = np.bincount(owners, minlength=len(cell_ends))
    return Masks(cells - starts[owners], grids["originals"][used], np.cumsum(counts))
