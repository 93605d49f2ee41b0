"""Packed rows as grids: an array [N, width] per field, padded with zeros.

The layouts of fixed width (``habana.py``, ``graphcore.py``) are built on grids. The key of a grid is the
quantity it stores, such as ids or mask_places. ``schemas/packed.json`` lists them under ``of``.
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
    """Interface of a layout that arranges sequences in rows of fixed width."""

    name: str

    def find_sizes(self, widths: Mapping[str, int]) -> dict[str, int]:
        """Derive the sizes of a ShardLayout, such as sequences_per_row, from the width of each grid."""
        ...

    def arrange_rows(self, packs: PackBatch, widths: Mapping[str, int], types: Mapping[str, Any]) -> Grids:
        """Convert packed rows, already checked, to grids of these widths and item types."""
        ...

    def read_rows(self, grids: Grids, batch_type: type[ExampleBatch], record: "GridCheck") -> PackBatch:
        """Convert grids to packed rows without checking them.

        The caller finds contradictions within the grids: it converts the rows to grids again and compares the
        results.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class GridCheck(RecordCheck):
    """RecordCheck that can also name a wrong cell. names: for each grid, the field's name in the file."""

    names: Mapping[str, str]

    def refuse_grid(self, wrong: Array, of: str, grid: Array, expected: str) -> None:
        """Raise ShardError for the first wrong cell of a grid."""
        if wrong.any():
            row, column = (int(place[0]) for place in np.nonzero(wrong))
            raise self.error(row, f"{self.names[of]}[{column}] is {grid[row, column]}, expected {expected}")

    def refuse_values(self, wrong: Array, used: Array, of: str, grids: Grids, expected: str) -> None:
        """Raise ShardError for the first wrong cell. ``wrong`` has one boolean per True cell of ``used``."""
        if wrong.any():
            cells = np.zeros(used.shape, bool)
            cells[used] = wrong
            self.refuse_grid(cells, of, grids[of], expected)


LOWEST_POSITION = 1
"""Lowest position that may be masked. Position 0 is [CLS], which is never masked.

Habana's layout uses 0 as padding, and Graphcore's stores [CLS] at the end of the row.
"""


def check_grid_rows(packs: PackBatch, layout: ShardLayout, record: RecordCheck) -> None:
    """Raise ShardError for the first row that the layout's grids cannot hold."""
    room = count_grid_mask_slots(layout)
    check_packs(packs, layout, record, lowest_position=LOWEST_POSITION, most_masks=room)


def read_grids(
    grids: Grids, layout: ShardLayout, arrangement: GridLayout, fields: RowFields, record: RecordCheck
) -> PackBatch:
    """Convert grids to checked packed rows.

    ShardError for the first row whose grids contradict each other or hold values in the padding.
    """
    names = {field.of: name for name, field in fields.items()}
    kind = find_objective(layout.objective).batch_type
    # Decoding uses only part of the cells. Arranging the result again must give the same grids. This finds
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
    """Return the ShardLayout for grids of these widths. ShardError if no packed rows can have such widths."""
    sizes: Any = arrangement.find_sizes(widths)
    layout = ShardLayout(packing=arrangement.name, objective=objective.name, **sizes)
    check_row_sizes(layout, name)
    return layout


@dataclass(frozen=True, kw_only=True, slots=True)
class SequencePlaces:
    """The place of each sequence (example) in a batch of packed rows. Every array has one item per sequence.

    rows: index of the row. numbers: number of the sequence in its row, from 1. sizes: number of ids.
    starts: index in the batch of the sequence's first id. row_starts: index of the first id of its row.
    """

    rows: Array
    numbers: Array
    sizes: Array
    starts: Array
    row_starts: Array

    @classmethod
    def of(cls, packs: PackBatch) -> "SequencePlaces":
        """Return the places of all sequences in a batch of packed rows."""
        examples: Any = packs.examples
        # ends of rows [2, 3], sizes of sequences [3, 4, 5]: rows [0, 0, 1], numbers [1, 2, 1], starts [0, 3,
        # 7], row_starts [0, 0, 7]
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
    """Return a grid whose row i begins with the next ``row_sizes[i]`` values, followed by zeros."""
    grid = np.zeros((len(row_sizes), width), kind)
    grid[make_leading_mask(row_sizes, width)] = values
    return grid


def arrange_masks(
    packs: PackBatch, starts: Array, numbers: Array, widths: Mapping[str, int], types: Mapping[str, Any]
) -> dict[str, Array]:
    """Return the grids that describe the masks: their places, original ids and sequence numbers.

    starts: for each sequence, the place in the row from which its masked positions count.
    numbers: number of each sequence in its row.
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


def number_counts(grids: Grids, used: Array, highest: Array, record: GridCheck) -> Array:
    """Count how many cells of each row have each sequence number. Return an array of shape [N, K].

    used: True for cells that belong to a sequence. highest: largest allowed sequence number of each row.
    ShardError unless the numbers in a row's used cells are 1, 2, ... without gaps, in ascending order.
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
    """Convert the grids of masks to masked positions within each sequence.

    used: True for cells that hold a mask.
    row_sizes: number of ids in each row, not counting [CLS] tokens that are stored at the row's end.
    cell_ends: number of ids, over all rows, up to the end of each sequence.
    starts: number of ids, in the same count, before position 0 of each sequence.
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
    # With row sizes [5, 3], place 1 of row 1 is cell 6 of all used cells. cell_ends says to which sequence a
    # cell belongs. Subtracting the sequence's item of starts gives the mask's position within the sequence.
    cells = (places + (np.cumsum(row_sizes) - row_sizes)[:, np.newaxis])[used]
    owners = np.searchsorted(cell_ends, cells, side="right")
    counts = np.bincount(owners, minlength=len(cell_ends))
    return Masks(cells - starts[owners], grids["originals"][used], np.cumsum(counts))
