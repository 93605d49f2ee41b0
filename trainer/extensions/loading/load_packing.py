"""Packing at load: rows of examples that follow each other in the order, packed in windows by best fit.

A window is the next ``window`` examples of an epoch; the last one of an epoch holds what is left. Its
rows come in an order of their own, so that they are not sorted by length. So the rows are a function of
the order of the examples and these settings; a position among them is the window's first example and the
rows of it that are consumed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import DatasetError, SettingsError
from bertdata.examples.columns import Array
from bertdata.records import ShardLayout
from trainer.data.compact import expand
from trainer.data.order import FileRows, Order, Position, numbers
from trainer.data.shares import Share
from trainer.extensions.loading.best_fit import pack_best_fit

ROW_LAYOUT = "load"
"""The name, in a ShardLayout, of rows that are packed at load."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadPacking:
    """Settings of packing at load: examples of a window, and the most that a row may hold."""

    window: int = 8192
    sequences_per_row: int = 16

    def layout(self, data: OpenedDataset) -> ShardLayout:
        """The layout of the rows; SettingsError where the dataset's rows are packed already."""
        if data.layout.packing is not None:
            raise SettingsError(
                f"{data.name}: its rows are packed already (layout {data.layout.packing}); "
                "pack_on_load needs a dataset of single examples"
            )
        return replace(data.layout, packing=ROW_LAYOUT, sequences_per_row=self.sequences_per_row)

    def rows_of(self, lengths: Array, longest: int) -> Array:
        """The row of each of some examples, as windows of them would be packed."""
        rows, before = list[Array](), 0
        for start in range(0, len(lengths), self.window):
            window = lengths[start : start + self.window]
            rows.append(before + pack_best_fit(window, longest, self.sequences_per_row))
            before = int(rows[-1].max()) + 1
        return np.concatenate(rows)

    def shares(self, data: OpenedDataset, order: Order, **place: Any) -> "PackedShares":
        """A worker's shares of the rows; place: the keywords of PackedShares."""
        return PackedShares(data, order, self, **place)


class Window:
    """Some examples of one epoch of the order in packed rows.

    files: those that hold the examples. coming: those of the examples behind the window. bounds: 0, then the
    example after each row.
    """

    def __init__(self, parts: list[FileRows], coming: list[int], rows: Array, shuffle: Array) -> None:
        """parts: the examples. rows: the row of each. shuffle: a number a row, by which rows are sorted."""
        self.files = [part.file for part in parts]
        self._epoch = parts[0].epoch
        self.coming = coming
        file, place = np.empty((2, len(rows)), np.int64)
        for part in parts:
            file[part.targets], place[part.targets] = part.file, part.rows
        ranks = np.argsort(np.argsort(shuffle, kind="stable"), kind="stable")
        order = np.argsort(ranks[rows], kind="stable")
        self._file, self._place = file[order], place[order]
        self.bounds = np.insert(np.cumsum(np.bincount(ranks[rows], minlength=len(shuffle))), 0, 0)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def find(self, rows: Array, ends: Array) -> Iterator[FileRows]:
        """The examples of the rows, file by file; targets: places such that each row ends at its end."""
        chosen, places = expand(self.bounds, rows, ends)
        files = self._file[chosen]
        for file in np.unique(files):
            here = np.flatnonzero(files == file)
            yield FileRows(int(file), self._place[chosen[here]], places[here], self._epoch)


class PackedShares:
    """Consecutive packed rows, of which row i of an update goes to micro-batch i mod their number.

    lengths: from a file to the tokens of its examples. offsets: the worker's own rows of an update, of
    ``update_rows``. rows_at_once: small updates are found several at a time, up to so many own rows.
    ahead: examples between a window's and those whose files are decoded with it.
    """

    def __init__(
        self,
        data: OpenedDataset,
        order: Order,
        packing: LoadPacking,
        *,
        offsets: Array,
        update_rows: int,
        lengths: Callable[[int], Array],
        seed: int,
        rows_at_once: int,
        ahead: int,
    ) -> None:
        self._data, self._order, self._packing = data, order, packing
        self._offsets, self._update_rows = offsets, update_rows
        self._lengths, self._seed = lengths, seed
        self._updates = max(1, rows_at_once // len(offsets))
        self._ahead = ahead
        self._window = lru_cache(maxsize=2)(self._pack)

    def find(self, position: Position) -> Iterator[Share]:
        """The endless shares from the position on; DatasetError where its window has fewer rows."""
        if position.rows and position.rows >= len(self._window(position.epoch, position.examples)):
            raise DatasetError(f"{self._data.name}: rows packed at load have no position {tuple(position)}")
        while True:
            stretches, positions = list[Stretch](), list[Position]()
            for update in range(self._updates):
                found, position = self._advance(position, update * len(self._offsets))
                stretches += found
                positions.append(position)
            stretches = _joined(stretches)
            sizes = np.empty(self._updates * len(self._offsets), np.int64)
            for window, rows, places in stretches:
                sizes[places] = window.bounds[rows + 1] - window.bounds[rows]
            ends = np.cumsum(sizes)
            yield Share(
                parts=[part for one in stretches for part in one.window.find(one.rows, ends[one.places])],
                row_ends=ends,
                now=[file for one in stretches for file in one.window.files],
                coming=stretches[-1].window.coming,
                positions=positions,
            )

    def _advance(self, position: Position, first: int) -> tuple[list["Stretch"], Position]:
        """The worker's rows of the update at the position, to places from ``first`` on; the next position."""
        found, before = list[Stretch](), 0
        while before < self._update_rows:
            window = self._window(position.epoch, position.examples)
            count = min(len(window) - position.rows, self._update_rows - before)
            own = np.flatnonzero((before <= self._offsets) & (self._offsets < before + count))
            found.append(Stretch(window, self._offsets[own] - before + position.rows, first + own))
            before += count
            position = position._replace(rows=position.rows + count)
            if position.rows == len(window):
                start = Position(position.epoch, position.examples)
                position = self._order.advance(start, self._count(position.examples))
        return found, position

    def _count(self, start: int) -> int:
        """The examples of the window that begins at that example of an epoch."""
        return min(self._packing.window, self._order.examples - start)

    def _pack(self, epoch: int, start: int) -> Window:
        """The window that begins at an example of an epoch."""
        position, count = Position(epoch, start), self._count(start)
        parts = list(self._order.find(position, np.arange(count)))
        behind = count + np.arange(self._packing.window)
        offsets = np.concatenate([behind, behind + self._ahead])
        lengths = np.empty(count, np.int64)
        for part in parts:
            lengths[part.targets] = self._lengths(part.file)[part.rows]
        rows = pack_best_fit(lengths, self._data.layout.max_seq_length, self._packing.sequences_per_row)
        shuffle = numbers(int(rows.max()) + 1, self._seed, epoch, "packed rows", start)
        coming = [part.file for part in self._order.find(position, offsets)]
        return Window(parts, coming, rows, shuffle)


class Stretch(NamedTuple):
    """Rows of a window, and the place of each among a worker's own."""

    window: Window
    rows: Array
    places: Array


def _joined(stretches: list[Stretch]) -> list[Stretch]:
    """The same rows in one stretch a window, which is found faster."""
    joined = list[Stretch]()
    for window, same in groupby(stretches, key=lambda one: one.window):
        parts = list(same)
        rows, places = (np.concatenate(arrays) for arrays in zip(*(part[1:] for part in parts), strict=True))
        joined.append(Stretch(window, rows, places))
    return joined
