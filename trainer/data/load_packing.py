"""Packing while loading: several short examples share a row, so that little padding is computed.

An epoch is divided into windows of ``window`` consecutive examples. The last window of an epoch may be
smaller. The examples of a window are packed into rows by a best-fit algorithm. Then the rows are shuffled,
because the algorithm returns them nearly sorted by length. The result depends only on the order of the
examples and the settings of packing. A run can resume from a position in the data. It consists of the first
example of a window and the number of the window's rows that are already used.
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
from trainer.data.order import Dealer, DecodedPiece, FileRows, Position, WorkerRows, draw_numbers
from trainer.data.packs import FullRows, find_row_examples
from trainer.data.windows import Window, find_lengths

ROW_LAYOUT = "load"
"""Value of ShardLayout.packing for rows that are packed while loading."""


def make_rows(keys: LoadingSection, rows: Rows) -> Rows:
    """Return the configured rows. Examples may be drawn from length bins, packed while loading, or neither.

    keys: the configuration's keys about loading.
    rows: the rows of the dataset without bins and packing. SettingsError if they cannot be binned or packed.
    """
    if keys.bins is not None:
        return RowsFromBins(rows.data, rows.masks, bins=keys.bins)
    return RowsPackedAtLoad(
        rows.data, rows.masks, window=keys.pack_window, sequences_per_row=keys.sequences_per_row
    )


@dataclass(frozen=True)
class RowsPackedAtLoad(FullRows):
    """Rows that are packed while loading, from the examples of a window.

    SettingsError if the dataset's rows are packed already.
    window: number of consecutive examples in a window.
    sequences_per_row: largest number of examples in a row.
    """

    window: int = 8192
    sequences_per_row: int = 16
    is_shareable = False

    def __post_init__(self) -> None:
        if self.data.layout.packing is not None:
            raise SettingsError(
                f"{self.data.name}: its rows are packed already (layout {self.data.layout.packing}); "
                "pack_on_load needs a dataset of single examples"
            )

    @property
    def layout(self) -> ShardLayout:
        """Sizes of the packed rows, such as the largest number of examples in a row."""
        return replace(self.data.layout, packing=ROW_LAYOUT, sequences_per_row=self.sequences_per_row)

    @property
    def examples_per_row(self) -> float:
        """The average number of examples in a packed row, estimated from a sample."""
        rows = self.rows_of(sample_sizes(self.data).lengths)
        return len(rows) / int(rows.max() + 1)

    def describe(self, update: str) -> str:
        """Return a text that describes how rows are packed, for checkpoints."""
        return f"packed at load, {self.window} examples together, at most {self.sequences_per_row} a row"

    def sizes(self) -> ExampleSizes:
        """Return the sizes of rows that are packed from a sample of examples."""
        found = super().sizes()
        rows = self.rows_of(found.lengths)
        each = len(rows) / (rows.max() + 1)
        tokens = np.bincount(rows, found.lengths)
        return replace(found, lengths=tokens, deviation=found.deviation * math.sqrt(each))

    def rows_of(self, lengths: Array) -> Array:
        """Pack consecutive examples, window by window. Return the number of the row to which each example
        belongs.

        lengths: number of tokens of each example.
        """
        rows, before = list[Array](), 0
        for start in range(0, len(lengths), self.window):
            rows.append(before + self.pack(lengths[start : start + self.window]))
            before = int(rows[-1].max()) + 1
        return np.concatenate(rows)

    def pack(self, lengths: Array) -> Array:
        """Pack the examples of a window. Return the number of the row to which each example belongs.

        lengths: number of tokens of each example.
        """
        return pack_best_fit(lengths, self.data.layout.max_seq_length, self.sequences_per_row)

    def decode(self, shard: Shard) -> CompactExamples:
        """Decode the shard. ShardError if the lengths in its lengths file are not those of the shard's
        examples.
        """
        held = super().decode(shard)
        if self.data.has_lengths:
            found, listed = held.lengths, np.asarray(self.data.lengths(shard))
            if len(wrong := np.flatnonzero(found != listed)):
                first = wrong[0]
                tokens = f"{found[first]} tokens, but {listed[first]} in {shard.lengths_path}"
                raise ShardError(f"{shard.path}: record {first}: {tokens}")
        return held

    def find_window(self, dealer: Dealer) -> int:
        """Return the number of consecutive examples that are packed together."""
        return self.window

    def find(self, dealer: Dealer, start: Position) -> Iterator[WorkerRows]:
        """Yield the packed rows of a worker from a position on."""
        return PackedOrder(self, dealer).find(start)

    def list_examples(self, own: WorkerRows, pieces: list[Piece]) -> tuple[list[Piece], Array]:
        """Return the arguments' values, because the order has already found the rows' examples."""
        assert own.row_ends is not None
        return pieces, own.row_ends


def pack_best_fit(lengths: Array, room: int, most: int) -> Array:
    """Pack examples into rows. Return the number of the row to which each example belongs.

    The algorithm is best-fit decreasing (Johnson 1973). Examples are packed in the order of their lengths,
    the longest first, and the earlier of equal ones first. Each is put into the fullest row that has room for
    it. Of equally full rows, the most recently changed one is taken. If no row has room, a new row begins.
    Rows are numbered in the order in which they begin.

    lengths: number of tokens of each example.
    room: number of tokens for which a row has room. No example is longer.
    most: largest number of examples in a row.
    """
    # For example, let room be 10 and lengths [4, 7, 3, 6]. The examples are packed in the order 7, 6, 4, 3,
    # into the rows 7 + 3 and 6 + 4. The result is the number of each example's row: [1, 0, 0, 1].
    tokens = lengths.tolist()
    rows = [0] * len(tokens)
    sizes = list[int]()  # number of examples in each row
    # by_room[n] are the rows that have room for n more tokens. The most recently changed row is the last.
    by_room: list[list[int]] = [[] for _ in range(room + 1)]
    rooms = list[int]()  # the numbers n for which by_room[n] is not empty, in ascending order
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
    """The examples of a window, sorted by the packed row to which they belong.

    coming: the files, or chunks of files, with the examples that follow the window. They are decoded next.
    bounds: 0, then for each row the index of the example after its last.
    """

    def __init__(
        self, parts: list[FileRows], coming: list[DecodedPiece], rows: Array, shuffle: Array
    ) -> None:
        """Shuffle the rows, and sort the examples by row.

        parts: the examples, file by file.
        rows: number of the row of each example.
        shuffle: a random number for each row, by which rows are sorted.
        """
        ranks = np.argsort(np.argsort(shuffle, kind="stable"), kind="stable")
        super().__init__(parts, np.argsort(ranks[rows], kind="stable"))
        self.coming = coming
        self.bounds = np.insert(np.cumsum(np.bincount(ranks[rows], minlength=len(shuffle))), 0, 0)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def find_rows(self, rows: Array, ends: Array) -> list[FileRows]:
        """Return the examples of some of the window's rows, file by file.

        rows: numbers of the rows.
        ends: for each of these rows, the place in the batch after its last example.
        """
        return [part for part in self.find(*find_row_examples(self.bounds, rows, ends)) if len(part.rows)]


WindowRows = tuple[PackedWindow, Array, Array]
"""Some rows of a window: the window, the numbers of the rows in it, and the place of each among this worker's
rows.
"""


class PackedOrder:
    """The order of rows that are packed while loading, without end.

    Row i of an update belongs to micro-batch i modulo the number of micro-batches.
    """

    def __init__(self, rows: RowsPackedAtLoad, dealer: Dealer) -> None:
        self._rows, self._dealer, self._order = rows, dealer, dealer.order
        self._offsets = dealer.offsets.ravel()
        self._window = lru_cache(maxsize=2)(self._pack)

    def find(self, position: Position) -> Iterator[WorkerRows]:
        """Yield the rows of this worker, a few updates at a time, without end.

        position: position in the data at which to begin. DatasetError if its window has fewer rows than it
        says.
        """
        if position.rows and position.rows >= len(self._window(position.epoch, position.examples)):
            raise DatasetError(
                f"{self._rows.data.name}: rows packed at load have no position {tuple(position)}"
            )
        # Rows are found for ``count`` updates at a time. ``offsets`` are the numbers of this worker's rows,
        # and ``ends`` the numbers of the rows after each update, both counted from the position.
        count, update_rows = self._dealer.updates, self._dealer.update_rows
        starts = np.arange(count) * update_rows
        offsets, ends = np.add.outer(starts, self._offsets).ravel(), starts + update_rows
        while True:
            stretches, positions = self._find(position, offsets, ends)
            # Rows have different numbers of examples. So first compute where in the batch each row's examples
            # end.
            sizes = np.empty(len(offsets), np.int64)
            for window, rows, places in stretches:
                sizes[places] = window.bounds[rows + 1] - window.bounds[rows]
            row_ends = np.cumsum(sizes)
            yield WorkerRows(
                parts=[
                    part
                    for window, rows, places in stretches
                    for part in window.find_rows(rows, row_ends[places])
                ],
                row_ends=row_ends,
                now=[part.piece for window, _, _ in stretches for part in window.parts],
                coming=stretches[-1][0].coming,
                positions=positions,
            )
            position = positions[-1]

    def _find(
        self, position: Position, offsets: Array, ends: Array
    ) -> tuple[list[WindowRows], list[Position]]:
        """Find rows and positions that lie after a position.

        Return the rows, window by window, and the positions.
        offsets: distances of the rows from the position, in rows.
        ends: distances of the positions from the position, in rows.
        """
        stretches, positions, before = list[WindowRows](), list[Position](), 0
        offsets, ends = position.rows + offsets, position.rows + ends
        start = position._replace(rows=0)
        # Go through the windows until the last row is found. ``before`` is the number of rows before the
        # current window, and ``after`` that number plus the rows of the window. Both are counted from the
        # first window.
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
        """Return the number of examples in the window that begins at example ``start`` of an epoch."""
        return min(self._rows.window, self._order.examples - start)

    def _pack(self, epoch: int, start: int) -> PackedWindow:
        """Pack the window that begins at example ``start`` of an epoch, and shuffle its rows."""
        position, count = Position(epoch, start), self._count(start)
        parts = list(self._order.find(position, np.arange(count)))
        behind = count + np.arange(self._rows.window)
        offsets = np.concatenate([behind, behind + self._dealer.ahead])
        rows = self._rows.pack(find_lengths(parts, count, self._dealer.lengths))
        shuffle = draw_numbers(int(rows.max()) + 1, self._dealer.seed, epoch, "packed rows", start)
        coming = [part.piece for part in self._order.find(position, offsets)]
        return PackedWindow(parts, coming, rows, shuffle)
