"""Rows of the training, and the deal of an update's rows to its micro-batches.

Dealt in turn, row i of an update goes to micro-batch i mod Q, Q = workers x accumulation. Where the lengths
of the examples are known, each group of neighbouring micro-batches deals its examples anew, so that all of
the group have near equal tokens: no worker then waits for one with longer examples.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.examples.columns import Array
from bertdata.records import ShardLayout
from trainer.config.settings import Config
from trainer.data.budgets import ExampleSizes, sample_sizes
from trainer.data.examples import CompactExamples, Piece
from trainer.data.order import FileRows, Order, Position
from trainer.registry import find

_GROUP_EXAMPLES = 1024  # enough for groups to have near equal tokens too
_GROUP_MICRO_BATCHES = 8


def group_size(micro_batches: int, batch_size: int) -> int:
    """Neighbouring micro-batches that exchange examples: a divisor of their number in an update.

    The smallest one that makes 8 micro-batches and 1024 examples. It bounds what a worker decodes: the
    files of its group, however many workers there are. Measured, a core decodes 90,000 to 220,000 examples of
    TFRecord a second, so the decoding for 8 GPUs takes each of their workers some 7 % of a core.
    """
    least = min(micro_batches, max(_GROUP_MICRO_BATCHES, -(-_GROUP_EXAMPLES // batch_size)))
    return next(size for size in range(least, micro_batches + 1) if micro_batches % size == 0)


def deal_evenly(lengths: Array, parts: int) -> Array:
    """The examples of each part, (groups, parts, n / parts) ascending, from (groups, n) lengths.

    The longest examples go first, one to each part in a round, the longest of a round to the part with the
    fewest tokens so far; of equals, to the first. So examples of one length are dealt in turn.
    """
    groups, count = lengths.shape
    order = np.argsort(-lengths.astype(np.int64), axis=1, kind="stable")
    falling = np.take_along_axis(lengths.astype(np.int64), order, axis=1)
    totals = np.zeros((groups, parts), np.int64)
    chosen = np.empty((groups, count), np.int64)
    row = np.arange(groups)[:, np.newaxis]
    for start in range(0, count, parts):
        lightest = np.argsort(totals, axis=1, kind="stable")
        totals[row, lightest] += falling[:, start : start + parts]
        chosen[row, order[:, start : start + parts]] = lightest
    return np.argsort(chosen, axis=1, kind="stable").reshape(groups, parts, count // parts)


class Deal:
    """One worker's rows of every update: a function of the lengths, Q and the batch size.

    offsets: (groups, rows), the rows of an update among which its own are. update_rows: all of an update.
    """

    def __init__(
        self, *, workers: int, rank: int, accumulation: int, batch_size: int, by_lengths: bool
    ) -> None:
        self.workers, self.rank, self.micro_batches = workers, rank, workers * accumulation
        self.batch_size, self.by_lengths = batch_size, by_lengths
        self.update_rows = self.micro_batches * batch_size
        self.size = group_size(self.micro_batches, batch_size) if by_lengths else 1
        own = rank + workers * np.arange(accumulation)
        groups, self._group = np.unique(own // self.size, return_inverse=True)
        self._part = own % self.size
        members = groups[:, np.newaxis, np.newaxis] * self.size + np.arange(self.size)
        turns = self.micro_batches * np.arange(batch_size)[:, np.newaxis]
        self.offsets = (members + turns).reshape(len(groups), -1)

    def own(self, lengths: Array) -> Array:
        """Indices into the flattened lengths, (updates, groups, rows): this worker's rows.

        They come update by update, micro-batch by micro-batch.
        """
        updates, groups, count = lengths.shape
        dealt = deal_evenly(lengths.reshape(-1, count), self.size).reshape(updates, groups, self.size, -1)
        starts = np.arange(updates * groups).reshape(updates, groups, 1, 1) * count
        own: Array = (dealt + starts)[:, self._group, self._part].ravel()
        return own


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class OwnRows:
    """The rows of a worker's micro-batches of one update or several, update by update.

    parts: rows of each file and their places among them; where row_ends is given, examples, of which it
    tells the one after each row. now, coming: the files that hold the rows of all workers, and those to be
    decoded next. positions: that after each update.
    """

    parts: list[FileRows]
    row_ends: Array | None = None
    now: list[int]
    coming: list[int]
    positions: list[Position]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Dealer:
    """A worker's deal of the rows of an order.

    lengths: from a file to the tokens of its rows. updates: so many small ones are found at a time. ahead:
    rows between those used and those whose files are decoded.
    """

    order: Order
    deal: Deal
    lengths: Callable[[int], Array]
    seed: int
    updates: int
    ahead: int

    def find(self, position: Position) -> Iterator[OwnRows]:
        """The worker's rows from the position on, without end."""
        order, update_rows = self.order, self.deal.update_rows
        starts = np.arange(self.updates)[:, np.newaxis, np.newaxis] * update_rows
        offsets = starts + self.deal.offsets
        ahead = max(self.ahead, self.updates * update_rows)
        while True:
            found = list(order.find(position, offsets.ravel()))
            coming = order.find(position, offsets.ravel() + ahead)
            positions = []
            for _ in range(self.updates):
                position = order.advance(position, update_rows)
                positions.append(position)
            yield OwnRows(
                parts=self._find_own(found, offsets.shape),
                now=[part.file for part in found],
                coming=[part.file for part in coming],
                positions=positions,
            )

    def _find_own(self, found: list[FileRows], shape: tuple[int, ...]) -> list[FileRows]:
        """Those of the rows found that are this worker's. targets: their places in its batches."""
        lengths = np.zeros(shape, np.int64)
        if self.deal.by_lengths:
            for part in found:
                lengths.ravel()[part.targets] = self.lengths(part.file)[part.rows]
        own = self.deal.own(lengths)
        places = np.full(lengths.size, -1)
        places[own] = np.arange(len(own))
        chosen = []
        for part in found:
            targets = places[part.targets]
            kept = targets >= 0
            chosen.append(FileRows(part.file, part.rows[kept], targets[kept], part.epoch))
        return chosen


@dataclass(frozen=True)
class Rows:
    """The rows that the order of a training deals: here the stored examples, each in a row of its own.

    ``trainer.extensions.loading`` has the others. masks: those drawn when examples are gathered, None for
    stored ones. bins: length bins that a micro-batch's rows are drawn from.
    """

    data: OpenedDataset
    masks: Any = None
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

    def expand(self, own: OwnRows, pieces: list[Piece], count: int) -> tuple[list[Piece], Array]:
        """The examples of ``count`` rows, a piece for each of the parts, and the example after each row."""
        return pieces, np.arange(1, count + 1)


def find_rows(config: Config, data: OpenedDataset) -> Rows:
    """The configured rows of a dataset. SettingsError where it cannot have them."""
    masking = config.masking_at_load
    rows: Rows = find("rows", masking)(config, data) if masking else Rows(data)
    if config.keys["bins"] or config.keys["pack_on_load"]:
        rows = find("rows", "made at load")(config.others["loading"], rows)
    elif data.layout.packing is not None:
        rows = find("rows", "of packs")(data, rows.masks)
    return rows
