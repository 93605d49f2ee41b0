"""Packing while loading: several short examples share a row, so that little padding is computed.

A window is the next ``window`` examples of an epoch. The last window of an epoch has what is left. The
examples of a window are packed into rows by best fit, and the rows are shuffled, because best fit returns
them nearly sorted by length. The rows are a function of the order of the examples and the settings of
packing. A position in the data, from which a run resumes, consists of the window's first example and the
number of the window's rows that are already used.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from bertdata.dataset.reader import Shard
from bertdata.errors import DatasetError, SettingsError, ShardError
from bertdata.examples.columns import Array
from bertdata.records import ShardLayout
from trainer.config.sections.data import LoadingSection
from trainer.data.bins import RowsFromBins
from trainer.data.budgets import ExampleSizes, sample_sizes
from trainer.data.examples import CompactExamples, Piece, Rows
from trainer.data.order import Dealer, FileRows, OwnRows, Position, draw_numbers
from trainer.data.packs import FullRows, find_row_examples
from trainer.data.windows import Window, find_lengths

ROW_LAYOUT = "load"
"""Name in a ShardLayout for rows that are packed while loading."""


def make_rows(keys: LoadingSection, rows: Rows) -> Rows:
    """Return the configured rows: from length bins, or packed while loading.

    rows: the rows of the data without packing, with their masks. Raises SettingsError if the data do not
    allow it.
    """
    if keys.bins is not None:
        return RowsFromBins(rows.data, rows.masks, bins=keys.bins)
    return RowsPackedAtLoad(
        rows.data, rows.masks, window=keys.pack_window, sequences_per_row=keys.sequences_per_row
    )


@dataclass(frozen=True)
class RowsPackedAtLoad(FullRows):
    """Rows that are packed from the examples of a window while loading.

    window: examples that are packed together. sequences_per_row: most examples of a row.
    Raises SettingsError if the dataset's rows are already packed.
    """

    window: int = 8192
    sequences_per_row: int = 16

    def __post_init__(self) -> None:
        if self.data.layout.packing is not None:
            raise SettingsError(
                f"{self.data.name}: its rows are packed already (layout {self.data.layout.packing}); "
                "pack_on_load needs a dataset of single examples"
            )

    @property
    def layout(self) -> ShardLayout:
        return replace(self.data.layout, packing=ROW_LAYOUT, sequences_per_row=self.sequences_per_row)

    @property
    def examples_per_row(self) -> float:
        rows = self.rows_of(sample_sizes(self.data).lengths)
        return len(rows) / int(rows.max() + 1)

    def describe(self, update: str) -> str:
        return f"packed at load, {self.window} examples together, at most {self.sequences_per_row} a row"

    def sizes(self) -> ExampleSizes:
        found = super().sizes()
        rows = self.rows_of(found.lengths)
        each = len(rows) / (rows.max() + 1)
        tokens = np.bincount(rows, found.lengths)
        return replace(found, lengths=tokens, deviation=found.deviation * math.sqrt(each))

    def rows_of(self, lengths: Array) -> Array:
        """Return the number of the packed row that each example goes to. Windows are packed separately.

        lengths: tokens of each example.
        """
        rows, before = list[Array](), 0
        for start in range(0, len(lengths), self.window):
            rows.append(before + self.pack(lengths[start : start + self.window]))
            before = int(rows[-1].max()) + 1
        return np.concatenate(rows)

    def pack(self, lengths: Array) -> Array:
        """Return the number of the packed row that each example of a window goes to.

        lengths: tokens of each example.
        """
        return pack_best_fit(lengths, self.data.layout.max_seq_length, self.sequences_per_row)

    def decode(self, shard: Shard) -> CompactExamples:
        """Decode the shard. Raises ShardError if its lengths file belongs to another shard."""
        held = super().decode(shard)
        if self.data.has_lengths:
            found, listed = held.lengths, np.asarray(self.data.lengths(shard))
            if len(wrong := np.flatnonzero(found != listed)):
                first = wrong[0]
                tokens = f"{found[first]} tokens, but {listed[first]} in {shard.lengths_path}"
                raise ShardError(f"{shard.path}: record {first}: {tokens}")
        return held

    def find(self, dealer: Dealer, start: Position) -> Iterator[OwnRows]:
        return PackedOrder(self, dealer).find(start)

    def expand(self, own: OwnRows, pieces: list[Piece]) -> tuple[list[Piece], Array]:
        assert own.row_ends is not None
        return pieces, own.row_ends


def pack_best_fit(lengths: Array, room: int, most: int) -> Array:
    """Return the number of the row that each example goes to.

    The longest example goes first, into the fullest row that has room for it.
    Best-fit decreasing (Johnson 1973). Of equal lengths the earlier example goes first. Of rows with equal
    room, the most recently changed row is used. A new row begins if no row has room. Rows are numbered in the
    order in which they begin.
    room: tokens of a row. No length is larger. most: most examples of a row.
    """
    # Room 10, lengths [4, 7, 3, 6]. In the order 7, 6, 4, 3 they make the rows 7 + 3 and 6 + 4.
    # The result is the row of each example: [1, 0, 0, 1].
    tokens = lengths.tolist()
    rows = [0] * len(tokens)
    sizes = list[int]()  # examples of each row
    # by_room[n]: rows with room for n tokens, the most recently changed row last.
    by_room: list[list[int]] = [[] for _ in range(room + 1)]
    rooms = list[int]()  # ascending: every number of free tokens that some row in by_room has
    for example in np.argsort(-lengths.astype(np.int64), kind="stable").tolist():
        length = tokens[example]
        found = bisect_left(rooms, length)
        if found < len(rooms):
            left = rooms[found]
            row = by_room[left].pop()
            if not by_room[left]:
                del rooms[found]
        else:
            left, row = room, len(sizes)
            sizes.append(0)
        rows[example] = row
        sizes[row] += 1
        left -= length
        if left and sizes[row] < most:
            if not by_room[left]:
                insort(rooms, left)
            by_room[left].append(row)
    return np.array(rows, np.int64)


class PackedWindow(Window):
    """Examples of one epoch in packed rows.

    coming: numbers of the files with the examples after the window, which are decoded next.
    bounds: 0, then the index of the example after each row.
    """

    def __init__(self, parts: list[FileRows], coming: list[int], rows: Array, shuffle: Array) -> None:
        """Sort the examples by row, and the rows by their random numbers.

        parts: the examples. rows: row of each example. shuffle: random number of each row.
        """
        ranks = np.argsort(np.argsort(shuffle, kind="stable"), kind="stable")
        super().__init__(parts, np.argsort(ranks[rows], kind="stable"))
        self.coming = coming
        self.bounds = np.insert(np.cumsum(np.bincount(ranks[rows], minlength=len(shuffle))), 0, 0)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def find_rows(self, rows: Array, ends: Array) -> list[FileRows]:
        """Return the examples of the rows, file by file.

        ends: for each row the place after its last example in the result, which determines where the row's
        examples go.
        """
        return [part for part in self.find(*find_row_examples(self.bounds, rows, ends)) if len(part.rows)]


Stretch = tuple[PackedWindow, Array, Array]
"""Rows of a window, with the place of each among this worker's rows."""


class PackedOrder:
    """The endless order of packed rows. Row i of an update goes to micro-batch i modulo the number of
    micro-batches.
    """

    def __init__(self, rows: RowsPackedAtLoad, dealer: Dealer) -> None:
        self._rows, self._dealer, self._order = rows, dealer, dealer.order
        self._offsets = dealer.offsets.ravel()
        self._window = lru_cache(maxsize=2)(self._pack)

    def find(self, position: Position) -> Iterator[OwnRows]:
        """Yield this worker's rows in an endless sequence that begins at the position.

        Raises DatasetError if the position's window has fewer rows.
        """
        if position.rows and position.rows >= len(self._window(position.epoch, position.examples)):
            raise DatasetError(
                f"{self._rows.data.name}: rows packed at load have no position {tuple(position)}"
            )
        # Rows are found for ``count`` updates at a time. offsets: rows of this worker. ends: the row after
        # each update.
        count, update_rows = self._dealer.updates, self._dealer.update_rows
        starts = np.arange(count) * update_rows
        offsets, ends = np.add.outer(starts, self._offsets).ravel(), starts + update_rows
        while True:
            stretches, positions = self._find(position, offsets, ends)
            # Rows have different numbers of examples, so first find where each row's examples will lie.
            sizes = np.empty(len(offsets), np.int64)
            for window, rows, places in stretches:
                sizes[places] = window.bounds[rows + 1] - window.bounds[rows]
            row_ends = np.cumsum(sizes)
            yield OwnRows(
                parts=[
                    part
                    for window, rows, places in stretches
                    for part in window.find_rows(rows, row_ends[places])
                ],
                row_ends=row_ends,
                now=[part.file for window, _, _ in stretches for part in window.parts],
                coming=stretches[-1][0].coming,
                positions=positions,
            )
            position = positions[-1]

    def _find(self, position: Position, offsets: Array, ends: Array) -> tuple[list[Stretch], list[Position]]:
        """Return the rows at the offsets from the position, and the positions after ``ends`` rows.

        The rows are grouped by window.
        """
        stretches, positions, before = list[Stretch](), list[Position](), 0
        offsets, ends = position.rows + offsets, position.rows + ends
        start = position._replace(rows=0)
        # Go through the windows until the last row is found. before, after: number of rows before and after
        # the window, counted from the position's window.
        while before < ends[-1]:
            window = self._window(start.epoch, start.examples)
            after = before + len(window)
            places = np.flatnonzero((before <= offsets) & (offsets < after))
            stretches.append((window, offsets[places] - before, places))
            reached = ends[(before <= ends) & (ends < after)] - before
            positions += [start._replace(rows=rows) for rows in reached.tolist()]
            start, before = self._order.advance(start, self._count(start.examples)), after
        if before == ends[-1]:
            positions.append(start)
        return stretches, positions

    def _count(self, start: int) -> int:
        """Return how many examples the window that begins at example ``start`` of an epoch has."""
        return min(self._rows.window, self._order.examples - start)

    def _pack(self, epoch: int, start: int) -> PackedWindow:
        """Return the window that begins at example ``start`` of an epoch."""
        position, count = Position(epoch, start), self._count(start)
        parts = list(self._order.find(position, np.arange(count)))
        behind = count + np.arange(self._rows.window)
        offsets = np.concatenate([behind, behind + self._dealer.ahead])
        rows = self._rows.pack(find_lengths(parts, count, self._dealer.lengths))
        shuffle = draw_numbers(int(rows.max()) + 1, self._dealer.seed, epoch, "packed rows", start)
        coming = [part.file for part in self._order.find(position, offsets)]
        return PackedWindow(parts, coming, rows, shuffle)
