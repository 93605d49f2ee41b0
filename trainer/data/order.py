"""The order of the examples in training, and how the rows of an update are dealt to its micro-batches.

The order is a function of seed, epoch, files and the number of open files. If the dataset is packed, the word
"examples" in this module means packed rows.

In each epoch the files are sorted by a hash and dealt to ``open_files`` queues, each file to the queue with
the fewest examples so far. A queue reads its files one after the other, each in a random permutation. The
queues take turns, with an example each. Queues that have run out are skipped.

Row i of an update goes to micro-batch i mod Q, where Q = workers x accumulation. If the lengths of the
examples are known, neighbouring micro-batches form groups, and each group deals its examples again so that
its micro-batches have nearly equal tokens. Otherwise workers with short examples would wait for workers with
long ones.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from bertdata.examples.columns import Array


class Position(NamedTuple):
    """A place in the order, from which a run can continue.

    epoch: number of the epoch, from 0. examples: examples of the epoch that are consumed.
    rows: used with packing while loading and with length bins, which reorder a window of examples at a time.
    Then ``examples`` is where the window begins, and ``rows`` counts the rows of the window that are
    consumed.
    """

    epoch: int = 0
    examples: int = 0
    rows: int = 0


class FileRows(NamedTuple):
    """Rows of one file in an epoch, and their places in the result that the caller asked for.

    rows: numbers of examples in the file. targets: for each row its index in the result.
    """

    file: int
    rows: Array
    targets: Array
    epoch: int


def draw_numbers(count: int, *key: object) -> Array:
    """Return ``count`` random 64-bit numbers from the key, the same on every machine.

    SplitMix64 (Steele et al. 2014), started from a hash of the key.
    """
    start = np.frombuffer(_digest(*key)[:8], dtype="<u8")
    z = start + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = z ^ (z >> np.uint64(31))
    return mixed


def _digest(*key: object) -> bytes:
    return blake2b("/".join(map(str, key)).encode()).digest()


class Order:
    """The endless order of the examples of some files.

    files: (name, number of examples) of each file.
    """

    def __init__(self, files: Sequence[tuple[str, int]], *, seed: int, open_files: int) -> None:
        self._files = files
        self._seed = seed
        self._queues = min(open_files, sum(examples > 0 for _, examples in files))
        self.examples = sum(examples for _, examples in files)
        self._epoch = lru_cache(maxsize=2)(self._deal)
        self._permutation = lru_cache(maxsize=2 * open_files + 2)(self._permute)

    def advance(self, position: Position, examples: int) -> Position:
        """Return the position ``examples`` examples after this position, in a later epoch if necessary."""
        epochs, rest = divmod(position.examples + examples, self.examples)
        return Position(position.epoch + epochs, rest)

    def find(self, position: Position, offsets: Array) -> Iterator[FileRows]:
        """Yield the examples at the offsets from the position, file by file."""
        # Offsets may reach into the next epoch, which has another order.
        epochs, index = np.divmod(position.examples + offsets, self.examples)
        for epoch in np.unique(epochs):
            targets = np.flatnonzero(epochs == epoch)
            number = position.epoch + int(epoch)
            for file, offset, here in self._epoch(number).find(index[targets]):
                yield FileRows(file, self._permutation(number, file)[offset], targets[here], number)

    def _permute(self, epoch: int, file: int) -> Array:
        """Return the random order of a file's examples in an epoch."""
        name, examples = self._files[file]
        return np.argsort(draw_numbers(examples, self._seed, epoch, name), kind="stable").astype(np.uint32)

    def _deal(self, epoch: int) -> "_Epoch":
        """Deal the files to the queues for an epoch."""
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
    """Maps the place of an example in an epoch to a file and a row in that file.

    files: files of all queues, one queue after the other. totals: number of examples of each queue.
    """

    def __init__(self, files: list[int], examples: list[int], totals: Array) -> None:
        # Cut the epoch into stretches within which no queue runs out, so that a division finds the queue.
        # Queues of 3, 1 and 2 examples take turns as 0 1 2 | 0 2 | 0. These are stretches of 3, 2 and 1
        # queues, which begin at turns 0, 1 and 2.
        self._files, self._ends = files, np.cumsum(examples)
        self._firsts = self._ends - examples
        self._before = np.cumsum(totals) - totals
        self._turns = np.unique([0, *totals])[:-1]  # the first turn of each stretch
        has_more = totals > self._turns[:, np.newaxis]
        self._widths = has_more.sum(axis=1)
        # queues that still have examples come first, in order
        self._active = np.argsort(~has_more, axis=1, kind="stable")
        lengths = np.diff([*self._turns, totals.max()])
        self._starts = np.cumsum([0, *(lengths * self._widths)[:-1]])

    def find(self, index: Array) -> Iterator[tuple[int, Array, Array]]:
        """Yield for each file (file, rows before permutation, their places in ``index``)."""
        # Find the stretch of each index, then the turn and the queue in it, then the place that the example
        # would have if all queues lay one after the other. The place belongs to one file.
        stretch = np.searchsorted(self._starts, index, side="right") - 1
        turn, beside = np.divmod(index - self._starts[stretch], self._widths[stretch])
        queue = self._active[stretch, beside]
        place = self._before[queue] + self._turns[stretch] + turn
        file_index = np.searchsorted(self._ends, place, side="right")
        for nth in np.unique(file_index):
            here = np.flatnonzero(file_index == nth)
            yield self._files[nth], place[here] - self._firsts[nth], here


def choose_group_size(micro_batches: int, batch_size: int) -> int:
    """Return the number of neighbouring micro-batches that exchange examples to get nearly equal tokens.

    It is the smallest divisor of ``micro_batches`` with which a group has at least 8 micro-batches and 1024
    examples. That is enough to make groups nearly equal to each other too. A worker decodes only the files of
    its groups, so that the work does not grow with the number of workers. A core decodes 90,000 to 220,000
    examples of TFRecord per second, so decoding the examples of 8 GPUs takes each of their workers some 7 %
    of a core.
    """
    least = min(micro_batches, max(8, -(-1024 // batch_size)))
    return next(size for size in range(least, micro_batches + 1) if micro_batches % size == 0)


def deal_evenly(lengths: Array, parts: int) -> Array:
    """Deal the examples of each group to ``parts`` micro-batches with nearly equal tokens.

    lengths: tokens of each example, shape (groups, n).
    Returns the examples of each part, ascending, shape (groups, parts, n / parts).
    In each round every part gets one example. The longest example of the round goes to the part with the
    fewest tokens so far. Ties go to the first part, so that examples of equal length are dealt in turn.
    """
    # One group with lengths [5, 9, 3, 7] and 2 parts. Round 1 deals 9 and 7: part 0 gets 9, part 1 gets 7.
    # Round 2 deals 5 and 3: part 1 is lighter and gets 5, part 0 gets 3. Totals: 12 and 12.
    groups, count = lengths.shape
    order = np.argsort(-lengths.astype(np.int64), axis=1, kind="stable")
    falling = np.take_along_axis(lengths.astype(np.int64), order, axis=1)
    totals = np.zeros((groups, parts), np.int64)
    chosen = np.empty((groups, count), np.int64)
    row = np.arange(groups)[:, np.newaxis]
    for start in range(0, count, parts):
        # lightest[g, k]: the part of group g with the k-th fewest tokens. It gets the k-th longest of the
        # round.
        lightest = np.argsort(totals, axis=1, kind="stable")
        totals[row, lightest] += falling[:, start : start + parts]
        chosen[row, order[:, start : start + parts]] = lightest
    return np.argsort(chosen, axis=1, kind="stable").reshape(groups, parts, count // parts)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class OwnRows:
    """The rows of a worker's micro-batches in one or several updates, update by update.

    parts: rows of each file and their places among the worker's rows. If row_ends is set, parts has examples
    instead, and row_ends is the index of the example after each row.
    now: files that contain these rows. coming: files to be decoded next.
    positions: position in the data after each update.
    """

    parts: list[FileRows]
    row_ends: Array | None = None
    now: list[int]
    coming: list[int]
    positions: list[Position]


@dataclass(frozen=True, kw_only=True, eq=False)
class Dealer:
    """Finds the rows of an order that are dealt to this worker.

    lengths: returns the tokens of a file's rows. by_lengths: deal by length, for nearly equal tokens.
    micro_batches: micro-batches of all workers in an update. batch_size: rows of each.
    most_rows: if updates are small, several are found at a time, with at most this number of rows.
    ahead: distance in rows between the rows in use and those whose files are decoded already.
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
        """The rows of an update over all workers."""
        return self.micro_batches * self.batch_size

    @property
    def updates(self) -> int:
        """The number of updates that are found at a time."""
        return max(1, self.most_rows // self.offsets.size)

    @property
    def group(self) -> int:
        """The number of micro-batches that exchange rows."""
        return choose_group_size(self.micro_batches, self.batch_size) if self.by_lengths else 1

    @cached_property
    def offsets(self) -> Array:
        """Rows of an update among which this worker's rows are, shape (groups, rows of a group)."""
        # Example: 4 micro-batches of 2 rows, 2 workers, groups of 2 micro-batches. Row i goes to micro-batch
        # i mod 4, so group 0 (micro-batches 0 and 1) has rows [0, 1, 4, 5], group 1 has rows [2, 3, 6, 7].
        # Rank 0 computes micro-batches 0 and 2, so it needs both groups.
        own = np.arange(self.rank, self.micro_batches, self.workers)
        groups = np.unique(own // self.group)[:, np.newaxis, np.newaxis]
        turns = self.micro_batches * np.arange(self.batch_size)[:, np.newaxis]
        members: Array = groups * self.group + np.arange(self.group) + turns
        return members.reshape(len(groups), -1)

    def find(self, position: Position) -> Iterator[OwnRows]:
        """Yield the worker's rows in an endless sequence that begins at the position."""
        order, update_rows = self.order, self.update_rows
        # The rows of several updates at once: offsets (updates, groups, rows of a group).
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
        """Return the rows that belong to this worker, out of the rows of its groups.

        found: rows of the groups, with targets in an array of shape (updates, groups, rows of a group).
        The returned targets are places in the worker's batches, update by update, micro-batch by micro-batch.
        """
        lengths, (updates, groups, count) = np.zeros(shape, np.int64), shape
        # Without lengths all lengths stay 0, and deal_evenly deals in turn.
        if self.by_lengths:
            for part in found:
                lengths.ravel()[part.targets] = self.lengths(part.file)[part.rows]
        # dealt: for each update, each group and each micro-batch of the group, the rows that the micro-batch
        # gets, as indices in the group. Adding ``starts`` makes them indices in the flat array of all rows.
        dealt = deal_evenly(lengths.reshape(-1, count), self.group).reshape(updates, groups, self.group, -1)
        starts = np.arange(updates * groups).reshape(updates, groups, 1, 1) * count
        # The first rows of a group go to its micro-batches in turn, so their numbers are the micro-batches'
        # numbers. is_own: which micro-batches of each group this worker computes.
        is_own = self.offsets[:, : self.group] % self.workers == self.rank
        own = (dealt + starts)[:, is_own].ravel()
        # places: the inverse of own, -1 for rows of other workers.
        places = np.full(lengths.size, -1)
        places[own] = np.arange(len(own))
        chosen = []
        for part in found:
            targets = places[part.targets]
            kept = targets >= 0
            chosen.append(part._replace(rows=part.rows[kept], targets=targets[kept]))
        return chosen
