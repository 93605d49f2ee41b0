"""The order of the examples in training, and the deal of an update's rows to its micro-batches.

The order is a function of seed, epoch, files and the number of open files. In a dataset of packed rows,
"examples" here are its rows.

In each epoch the files are sorted by a hash and dealt to ``open_files`` queues, each file to the queue with
the fewest examples so far. A queue reads its files one after another, each in a random permutation. The
queues give one example in turn; those that have run out are skipped.

Dealt in turn, row i of an update goes to micro-batch i mod Q, Q = workers x accumulation. Where the lengths
of the examples are known, each group of neighbouring micro-batches deals its examples anew, so that all of
the group have near equal tokens: no worker then waits for one with longer examples.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from bertdata.examples.columns import Array


class Position(NamedTuple):
    """A point in the order: the epoch, from 0, and the examples of it that are consumed.

    rows: with packing at load, or length bins, the rows consumed of the window that begins there.
    """

    epoch: int = 0
    examples: int = 0
    rows: int = 0


class FileRows(NamedTuple):
    """Some rows (example numbers) of one file in an epoch, and the index of each in what was asked for."""

    file: int
    rows: Array
    targets: Array
    epoch: int


def numbers(count: int, *key: object) -> Array:
    """``count`` 64-bit numbers from the key, the same on every machine: SplitMix64 (Steele et al. 2014)."""
    start = np.frombuffer(_digest(*key)[:8], dtype="<u8")
    z = start + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = z ^ (z >> np.uint64(31))
    return mixed


def _digest(*key: object) -> bytes:
    return blake2b("/".join(map(str, key)).encode()).digest()


class Order:
    """The endless order of the examples of some files, each a name and a number of examples."""

    def __init__(self, files: Sequence[tuple[str, int]], *, seed: int, open_files: int) -> None:
        self._files = files
        self._seed = seed
        self._queues = min(open_files, sum(examples > 0 for _, examples in files))
        self.examples = sum(examples for _, examples in files)
        self._epoch = lru_cache(maxsize=2)(self._deal)
        self._permutation = lru_cache(maxsize=2 * open_files + 2)(self._permute)

    def advance(self, position: Position, examples: int) -> Position:
        """The position after that many more examples."""
        epochs, rest = divmod(position.examples + examples, self.examples)
        return Position(position.epoch + epochs, rest)

    def find(self, position: Position, offsets: Array) -> Iterator[FileRows]:
        """The examples at the offsets from the position, file by file."""
        epochs, index = np.divmod(position.examples + offsets, self.examples)
        for epoch in np.unique(epochs):
            targets = np.flatnonzero(epochs == epoch)
            number = position.epoch + int(epoch)
            for file, offset, here in self._epoch(number).find(index[targets]):
                yield FileRows(file, self._permutation(number, file)[offset], targets[here], number)

    def _permute(self, epoch: int, file: int) -> Array:
        name, examples = self._files[file]
        return np.argsort(numbers(examples, self._seed, epoch, name), kind="stable").astype(np.uint32)

    def _deal(self, epoch: int) -> "_Epoch":
        queues: list[list[int]] = [[] for _ in range(self._queues)]
        totals = [0] * self._queues
        used = [number for number, (_, examples) in enumerate(self._files) if examples]
        for file in sorted(used, key=lambda number: _digest(self._seed, epoch, self._files[number][0])):
            queue = totals.index(min(totals))
            queues[queue].append(file)
            totals[queue] += self._files[file][1]
        files = [file for queue in queues for file in queue]
        return _Epoch(files, [self._files[file][1] for file in files], np.array(totals))


class _Epoch:
    """The map from an index in one epoch to a file and a row of it.

    The epoch is cut into stretches within which no queue runs out, so that a division finds the queue.
    files: those of all queues, one queue after the other. totals: each queue's examples.
    """

    def __init__(self, files: list[int], examples: list[int], totals: Array) -> None:
        self._files, self._ends = files, np.cumsum(examples)
        self._firsts = self._ends - examples
        self._before = np.cumsum(totals) - totals
        self._turns = np.unique([0, *totals])[:-1]  # the first turn of each stretch
        has_more = totals > self._turns[:, np.newaxis]
        self._widths = has_more.sum(axis=1)
        self._active = np.argsort(~has_more, axis=1, kind="stable")  # queues that have more first, in order
        lengths = np.diff([*self._turns, totals.max()])
        self._starts = np.cumsum([0, *(lengths * self._widths)[:-1]])

    def find(self, index: Array) -> Iterator[tuple[int, Array, Array]]:
        """(file, rows counted from its start, before its permutation, index of each in the index)."""
        stretch = np.searchsorted(self._starts, index, side="right") - 1
        turn, beside = np.divmod(index - self._starts[stretch], self._widths[stretch])
        queue = self._active[stretch, beside]
        place = self._before[queue] + self._turns[stretch] + turn
        file_index = np.searchsorted(self._ends, place, side="right")
        for nth in np.unique(file_index):
            here = np.flatnonzero(file_index == nth)
            yield self._files[nth], place[here] - self._firsts[nth], here


def group_size(micro_batches: int, batch_size: int) -> int:
    """Neighbouring micro-batches that exchange examples: a divisor of their number in an update.

    The smallest one that makes 8 micro-batches and 1024 examples, so that groups have near equal tokens too.
    It bounds what a worker decodes: the files of its group, however many workers there are. Measured, a core
    decodes 90,000 to 220,000 examples of TFRecord a second, so the decoding for 8 GPUs takes each of their
    workers some 7 % of a core.
    """
    least = min(micro_batches, max(8, -(-1024 // batch_size)))
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Dealer:
    """A worker's deal of the rows of an order: a function of the lengths, the micro-batches and their size.

    lengths: from a file to the tokens of its rows. micro_batches: of all workers in an update. most_rows: of
    small updates, several are found at a time, with at most so many rows. ahead: rows between those used and
    those whose files are decoded.
    """

    order: Order
    lengths: Callable[[int], Array]
    by_lengths: bool
    workers: int
    rank: int
    micro_batches: int
    batch_size: int
    seed: int
    most_rows: int
    ahead: int

    @property
    def update_rows(self) -> int:
        return self.micro_batches * self.batch_size

    @property
    def updates(self) -> int:
        """The updates that are found at a time."""
        return max(1, self.most_rows // self.offsets.size)

    @property
    def group(self) -> int:
        """The micro-batches that exchange rows."""
        return group_size(self.micro_batches, self.batch_size) if self.by_lengths else 1

    @cached_property
    def offsets(self) -> Array:
        """(groups, rows): the rows of an update among which this worker's own are."""
        own = np.arange(self.rank, self.micro_batches, self.workers)
        groups = np.unique(own // self.group)[:, np.newaxis, np.newaxis]
        turns = self.micro_batches * np.arange(self.batch_size)[:, np.newaxis]
        members: Array = groups * self.group + np.arange(self.group) + turns
        return members.reshape(len(groups), -1)

    def find(self, position: Position) -> Iterator[OwnRows]:
        """The worker's rows from the position on, without end."""
        order, update_rows = self.order, self.update_rows
        offsets = np.arange(self.updates)[:, np.newaxis, np.newaxis] * update_rows + self.offsets
        ahead = max(self.ahead, self.updates * update_rows)
        while True:
            found = list(order.find(position, offsets.ravel()))
            coming = order.find(position, offsets.ravel() + ahead)
            positions = [order.advance(position, nth * update_rows) for nth in range(1, self.updates + 1)]
            position = positions[-1]
            yield OwnRows(
                parts=self._find_own(found, offsets.shape),
                now=[part.file for part in found],
                coming=[part.file for part in coming],
                positions=positions,
            )

    def _find_own(self, found: list[FileRows], shape: tuple[int, ...]) -> list[FileRows]:
        """Those of the rows found, (updates, groups, rows), that are this worker's.

        targets: their places in its batches, update by update, micro-batch by micro-batch.
        """
        lengths, (updates, groups, count) = np.zeros(shape, np.int64), shape
        if self.by_lengths:
            for part in found:
                lengths.ravel()[part.targets] = self.lengths(part.file)[part.rows]
        dealt = deal_evenly(lengths.reshape(-1, count), self.group).reshape(updates, groups, self.group, -1)
        starts = np.arange(updates * groups).reshape(updates, groups, 1, 1) * count
        is_own = self.offsets[:, : self.group] % self.workers == self.rank
        own = (dealt + starts)[:, is_own].ravel()
        places = np.full(lengths.size, -1)
        places[own] = np.arange(len(own))
        chosen = []
        for part in found:
            targets = places[part.targets]
            kept = targets >= 0
            chosen.append(part._replace(rows=part.rows[kept], targets=targets[kept]))
        return chosen
