"""The order of the examples in training, and how the examples of an update are divided among its
micro-batches.

The order depends only on the seed, the epoch, the files and the number of open files. If the dataset is
packed, the word "examples" in this module means packed rows.

In each epoch the files are sorted by a hash and divided among ``open_files`` queues. Each file goes to the
queue that has the fewest examples so far. A queue reads its files one after the other, each in a random
permutation. The queues take turns: each provides one example, then it is the next queue's turn. Queues
without examples are skipped.

Let Q = workers x accumulation be the number of micro-batches in an update. Example i of an update belongs to
micro-batch i modulo Q. If the lengths of the examples are known, neighbouring micro-batches form groups. The
examples of a group are then divided again, so that its micro-batches have nearly equally many tokens.
Without balancing, workers with short examples would wait for workers with long examples.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from bertdata.examples.columns import Array


class Position(NamedTuple):
    """A position in the order of the training data, from which a run can continue.

    epoch: number of the epoch, counted from 0.
    examples: number of the epoch's examples that are already used.
    rows: 0, except with packing while loading and with length bins. These change the order within a window of
    consecutive examples. Then ``examples`` is the example at which the window begins, and ``rows`` is the
    number of the window's rows that are already used.
    """

    epoch: int = 0
    examples: int = 0
    rows: int = 0


class FileRows(NamedTuple):
    """Some examples of a single file, and where each belongs in the result that a caller wants.

    file: number of the file.
    rows: indices of the examples in the file.
    targets: for each of these examples, its index in the result.
    epoch: number of the epoch.
    chunk: number of the file's chunk to which the rows belong. It is 0 if files are read whole. Only
    ``trainer.data.streams`` reads them in chunks.
    """

    file: int
    rows: Array
    targets: Array
    epoch: int
    chunk: int = 0

    @property
    def piece(self) -> "DecodedPiece":
        """The file and the chunk that must be decoded for these rows."""
        return self.file, self.chunk


class FileSpans(NamedTuple):
    """Places of the examples of each file in an epoch.

    queues: number of the queue that reads the file.
    firsts, lasts: places in the epoch of the first and the last example of the file. All three are -1 for a
        file without examples.
    """

    queues: Array
    firsts: Array
    lasts: Array


DecodedPiece = tuple[int, int]
"""Number of a file, and number of a chunk in it, which is decoded at once. It is chunk 0 if the whole file
is decoded at once.
"""


def list_epochs(epochs: Array) -> range:
    """Return the numbers from the first to the last of some epochs, which are given for each example."""
    return range(int(epochs.min()), int(epochs.max()) + 1) if len(epochs) else range(0)


def draw_numbers(count: int, *key: object) -> Array:
    """Return ``count`` random 64-bit numbers that follow from the key. They are the same on every machine.

    The generator is SplitMix64 (Steele et al. 2014). It starts with a hash of the key.
    """
    start = np.frombuffer(hash_key(*key)[:8], dtype="<u8")
    z = start + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = z ^ (z >> np.uint64(31))
    return mixed


def hash_key(*key: object) -> bytes:
    """Return a hash of the key, which is the same on every machine."""
    return blake2b("/".join(map(str, key)).encode()).digest()


class Order:
    """The order of the examples of some files, without end. The module's docstring explains it.

    files: (name, number of examples) of each file.
    seed: seed of the order.
    open_files: number of files that are read at the same time.

    queues: number of files that are read at the same time, which is smaller if there are fewer files.
    """

    def __init__(self, files: Sequence[tuple[str, int]], *, seed: int, open_files: int) -> None:
        self._files = files
        self._seed = seed
        self.queues = min(open_files, sum(examples > 0 for _, examples in files))
        self.examples = sum(examples for _, examples in files)
        self._epoch = lru_cache(maxsize=2)(self._divide_files)
        self._permutation = lru_cache(maxsize=2 * open_files + 2)(self._permute)

    def advance(self, position: Position, examples: int) -> Position:
        """Return the position that lies ``examples`` examples after another position. It may be in a later
        epoch.
        """
        epochs, rest = divmod(position.examples + examples, self.examples)
        return Position(position.epoch + epochs, rest)

    def find_place(self, position: Position) -> int:
        """Return the number of examples before a position, counted from the beginning of the first epoch."""
        return position.epoch * self.examples + position.examples

    def find(self, position: Position, offsets: Array) -> Iterator[FileRows]:
        """Yield the examples at some distances after a position, file by file.

        position: position in the data.
        offsets: distances of the examples from the position, in examples.
        """
        # An offset may lie in the next epoch, which has another order.
        epochs, index = np.divmod(position.examples + offsets, self.examples)
        for epoch in list_epochs(epochs):
            targets = np.flatnonzero(epochs == epoch)
            number = position.epoch + epoch
            for file, offset, here in self._epoch(number).find(index[targets]):
                yield FileRows(file, self._permutation(number, file)[offset], targets[here], number)

    def list_pieces(self, position: Position, offsets: Array) -> list[DecodedPiece]:
        """Return what must be decoded for the examples at some distances after a position.

        position, offsets: arguments of ``find``.
        """
        return [part.piece for part in self.find(position, offsets)]

    def list_spans(self, epoch: int) -> FileSpans:
        """Return where the examples of each file lie in an epoch."""
        return self._epoch(epoch).list_spans(len(self._files))

    def _permute(self, epoch: int, file: int) -> Array:
        """Return the indices of a file's examples in their random order for an epoch."""
        name, examples = self._files[file]
        return np.argsort(draw_numbers(examples, self._seed, epoch, name), kind="stable").astype(np.uint32)

    def _divide_files(self, epoch: int) -> "EpochIndex":
        """Divide the files among the queues for an epoch."""
        queues: list[list[int]] = [[] for _ in range(self.queues)]
        totals = [0] * self.queues
        used = [number for number, (_, examples) in enumerate(self._files) if examples]
        for file in sorted(used, key=lambda number: hash_key(self._seed, epoch, self._files[number][0])):
            queue = totals.index(min(totals))
            queues[queue].append(file)
            totals[queue] += self._files[file][1]
        files = [file for queue in queues for file in queue]
        return EpochIndex(files, [self._files[file][1] for file in files], np.array(totals))


class EpochIndex:
    """Index of an epoch, which gives the file of an example and its index in this file, by its place in the
    epoch.

    starts, turns: for each stretch of the epoch, in which the same queues take turns, the place and the turn
    at which it begins.
    widths, lengths: for each stretch, the number of queues and of turns.
    active: for each stretch, its queues in the order of their turns, followed by the other queues.

    files: numbers of the files of all queues, one queue after the other.
    examples: number of examples in each of these files.
    totals: number of examples of each queue.
    """

    def __init__(self, files: list[int], examples: list[int], totals: Array) -> None:
        # Divide the epoch into stretches in which all queues that take turns have examples. Within a stretch,
        # a division is enough to find the queue. For example, queues with 3, 1 and 2 examples take turns as 0
        # 1 2 | 0 2 | 0. These are three stretches with 3, 2 and 1 queues, which begin at turns 0, 1 and 2.
        self._files, self._ends = np.array(files), np.cumsum(examples)
        self._firsts = self._ends - examples
        self._before = np.cumsum(totals) - totals
        self.turns = np.unique([0, *totals])[:-1]  # the first turn of each stretch
        has_more = totals > self.turns[:, np.newaxis]
        self.widths = has_more.sum(axis=1)
        # For each stretch, the queues that still have examples, followed by the others.
        self.active = np.argsort(~has_more, axis=1, kind="stable")
        self.lengths = np.diff([*self.turns, totals.max()])
        self.starts = np.cumsum([0, *(self.lengths * self.widths)[:-1]])

    def find(self, index: Array) -> Iterator[tuple[int, Array, Array]]:
        """Yield for each file (number of the file, indices of examples in it, their places in ``index``).

        The indices are those before the file's examples are permuted.
        index: places of examples in the epoch.
        """
        # Find the stretch of each place, then the turn and the queue in the stretch. From stretch, turn and
        # queue, ``_locate`` computes the place that the example would have if all queues were read one after
        # the other. It lies in one of the files.
        stretch = np.searchsorted(self.starts, index, side="right") - 1
        turn, beside = np.divmod(index - self.starts[stretch], self.widths[stretch])
        queue = self.active[stretch, beside]
        file_index, rows = self._locate(queue, self.turns[stretch] + turn)
        for nth in np.unique(file_index):
            here = np.flatnonzero(file_index == nth)
            yield int(self._files[nth]), rows[here], here

    def locate(self, queues: Array, turns: Array) -> tuple[Array, Array]:
        """Return the file that provides the example of a queue's turn, and the example's index in the file.

        The index is the one before the file's examples are permuted.
        queues: numbers of queues.
        turns: for each of these queues, the number of the turn, counted from 0.
        """
        file_index, rows = self._locate(queues, turns)
        return self._files[file_index], rows

    def list_spans(self, count: int, run: int = 1) -> FileSpans:
        """Return where the examples of each file lie in the epoch.

        count: number of all files.
        run: number of examples that a queue provides in a turn (``trainer.data.streams``).
        """
        spans = FileSpans(*np.full((3, count), -1))
        queues = np.searchsorted(self._before, self._firsts, side="right") - 1
        before = self._before[queues]
        spans.queues[self._files] = queues
        spans.firsts[self._files] = self._find_places(queues, self._firsts - before, run)
        spans.lasts[self._files] = self._find_places(queues, self._ends - 1 - before, run)
        return spans

    def _find_places(self, queues: Array, numbers: Array, run: int) -> Array:
        """Return the places in the epoch of some queues' examples.

        queues: numbers of queues.
        numbers: for each of these queues, the number of one of its examples, counted from 0.
        run: number of examples that a queue provides in a turn.
        """
        stretch = np.searchsorted(self.turns, numbers, side="right") - 1
        turn, inside = np.divmod(numbers - self.turns[stretch], run)
        # the last turn of a stretch may be shorter
        size = np.minimum(run, self.lengths[stretch] - turn * run)
        beside = np.argsort(self.active, axis=1)[stretch, queues]
        places: Array = self.starts[stretch] + turn * run * self.widths[stretch] + beside * size + inside
        return places

    def _locate(self, queues: Array, turns: Array) -> tuple[Array, Array]:
        """Return the same as ``locate``, with the file's place among the files of all queues."""
        place = self._before[queues] + turns
        file_index = np.searchsorted(self._ends, place, side="right")
        return file_index, place - self._firsts[file_index]


def choose_group_size(micro_batches: int, batch_size: int) -> int:
    """Return the number of neighbouring micro-batches that exchange examples to get nearly equal tokens.

    The result is the smallest divisor of ``micro_batches`` with which a group has at least 8 micro-batches
    and 1024 examples. In groups of this size, the total numbers of tokens are nearly equal too. A worker
    decodes only the files of its groups, so its work does not grow with the number of workers. A processor
    core decodes 90,000 to 220,000 examples of TFRecord files in a second. To decode the examples of all 8
    GPUs takes each of their workers some 7 % of a core.

    micro_batches: number of micro-batches in an update, over all workers.
    batch_size: number of examples in a micro-batch.
    """
    least = min(micro_batches, max(8, -(-1024 // batch_size)))
    return next(size for size in range(least, micro_batches + 1) if micro_batches % size == 0)


def balance_tokens(lengths: Array, parts: int) -> Array:
    """Divide the examples of each group among its micro-batches, so that all have nearly equally many tokens.

    Return the indices of the examples of each micro-batch in ascending order, shape (groups, parts, n /
    parts).

    The examples are distributed in rounds, the longest first. In each round every micro-batch gets one
    example. The micro-batch with the fewest tokens so far gets the longest example of the round. Of
    micro-batches with equally many tokens, the first gets the longer example. So examples of equal length are
    given out in turn.

    lengths: number of tokens of each example, shape (groups, n).
    parts: number of micro-batches in a group.
    """
    # For example, a group has examples of lengths [5, 9, 3, 7] and 2 micro-batches (parts). In round 1, part
    # 0 gets 9 and part 1 gets 7. In round 2, part 1 has fewer tokens and gets 5, and part 0 gets 3. Both have
    # 12 tokens.
    groups, count = lengths.shape
    if parts == 1:
        return np.broadcast_to(np.arange(count), (groups, 1, count))
    order = np.argsort(-lengths.astype(np.int64), axis=1, kind="stable")
    falling = np.take_along_axis(lengths.astype(np.int64), order, axis=1)
    totals = np.zeros((groups, parts), np.int64)
    chosen = np.empty((groups, count), np.int64)
    row = np.arange(groups)[:, np.newaxis]
    for start in range(0, count, parts):
        # lightest[g, k] is the part of group g with the k-th fewest tokens. It gets the k-th longest example
        # of the round.
        lightest = np.argsort(totals, axis=1, kind="stable")
        totals[row, lightest] += falling[:, start : start + parts]
        chosen[row, order[:, start : start + parts]] = lightest
    return np.argsort(chosen, axis=1, kind="stable").reshape(groups, parts, count // parts)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class WorkerRows:
    """The rows of a worker's micro-batches in one or several updates, update by update.

    parts: for each file, the rows in it and their places among the worker's rows. If row_ends is set, the
    examples of these rows, and their places among all examples.
    row_ends: for each row, the index of the example after its last. None if ``parts`` has rows.
    now: what must be decoded for these rows.
    coming: what is to be decoded next.
    positions: position in the data after each update.
    """

    parts: list[FileRows]
    row_ends: Array | None = None
    now: list[DecodedPiece]
    coming: list[DecodedPiece]
    positions: list[Position]


@dataclass(frozen=True, kw_only=True, eq=False)
class Dealer:
    """Object that divides the rows of each update among the micro-batches, and finds the rows of this
    worker's micro-batches.

    order: the order of the rows.
    lengths: function that returns the number of tokens of each row of a file.
    by_lengths: True divides rows by length, so that micro-batches have nearly equally many tokens.
    world_size: number of workers.
    rank: number of this worker.
    micro_batches: number of micro-batches in an update, over all workers.
    batch_size: number of rows in a micro-batch.
    seed: seed of the order.
    most_rows: largest number of this worker's rows in several small updates that are found together.
    ahead: how many rows in advance files are decoded.
    """

    order: Order
    lengths: Callable[[int], Array]
    by_lengths: bool
    world_size: int
    rank: int
    micro_batches: int
    batch_size: int
    seed: int
    most_rows: int
    ahead: int

    @property
    def update_rows(self) -> int:
        """The number of rows in an update, over all workers."""
        return self.micro_batches * self.batch_size

    @property
    def updates(self) -> int:
        """The number of updates whose rows are found together."""
        own_rows = self.batch_size * len(range(self.rank, self.micro_batches, self.world_size))
        return max(1, self.most_rows // own_rows)

    @property
    def group(self) -> int:
        """The number of neighbouring micro-batches that form a group and exchange rows."""
        return choose_group_size(self.micro_batches, self.batch_size) if self.by_lengths else 1

    @cached_property
    def offsets(self) -> Array:
        """The numbers of an update's rows in the groups to which this worker's micro-batches belong.

        The shape is (groups, rows of a group).
        """
        # For example, an update has 4 micro-batches of 2 rows, in groups of 2 micro-batches. Row i belongs to
        # micro-batch i mod 4. So group 0 (micro-batches 0 and 1) has the rows [0, 1, 4, 5], and group 1 has
        # the rows [2, 3, 6, 7]. With 2 workers, rank 0 computes micro-batches 0 and 2, so it needs both
        # groups.
        own = np.arange(self.rank, self.micro_batches, self.world_size)
        groups = np.unique(own // self.group)[:, np.newaxis, np.newaxis]
        turns = self.micro_batches * np.arange(self.batch_size)[:, np.newaxis]
        members: Array = groups * self.group + np.arange(self.group) + turns
        return members.reshape(len(groups), -1)

    def find(self, position: Position) -> Iterator[WorkerRows]:
        """Yield this worker's rows from a position on, one or several updates at a time, without end."""
        order, size, ahead = self.order, self.update_rows, self.find_distance_ahead()
        while True:
            parts, now = self.find_for_updates(position)
            later = order.advance(position, ahead)
            coming = order.list_pieces(later, self.find_offsets(later).ravel())
            positions = [order.advance(position, nth * size) for nth in range(1, self.updates + 1)]
            position = positions[-1]
            yield WorkerRows(
                parts=parts,
                now=now,
                coming=coming,
                positions=positions,
            )

    def find_for_updates(self, position: Position) -> tuple[list[FileRows], list[DecodedPiece]]:
        """Return this worker's rows in the next updates, file by file, and what must be decoded for the rows
        of its groups.

        The targets are places among the worker's rows, sorted by update and micro-batch.
        position: position in the data at which the first update begins.
        """
        offsets = self.find_offsets(position)
        found = list(self.order.find(position, offsets.ravel()))
        return self._find_own(found, offsets.shape), [part.piece for part in found]

    def find_offsets(self, position: Position) -> Array:
        """Return the rows of this worker's groups in the next updates, as distances from a position.

        The shape is (updates, groups, rows of a group). Here the result is the same for every position.
        """
        return self._offsets_of_updates

    @cached_property
    def _offsets_of_updates(self) -> Array:
        """The result of ``find_offsets``, which would be slow to compute for each batch."""
        found: Array = np.arange(self.updates)[:, np.newaxis, np.newaxis] * self.update_rows + self.offsets
        return found

    def find_distance_ahead(self) -> int:
        """Return how many rows after a position the rows lie whose files are decoded in advance.

        They are at least as many as are found together.
        """
        return max(self.ahead, self.updates * self.update_rows)

    def _find_own(self, found: list[FileRows], shape: tuple[int, ...]) -> list[FileRows]:
        """Select the rows of this worker's micro-batches from the rows of its groups.

        In the result, the targets are places among the worker's rows, sorted by update and micro-batch.
        found: rows of the groups. Their targets are flat indices into an array of the given shape.
        shape: (updates, groups, rows of a group).
        """
        lengths = np.zeros(shape, np.int64)
        if self.by_lengths:
            for part in found:
                lengths.ravel()[part.targets] = self.lengths(part.file)[part.rows]
        own = self._choose_own(lengths)
        # ``places`` is the inverse of ``own``: the place of each row among the worker's rows, -1 for other
        # workers' rows.
        places = np.full(lengths.size, -1)
        places[own] = np.arange(len(own))
        chosen = []
        for part in found:
            targets = places[part.targets]
            kept = targets >= 0
            chosen.append(part._replace(rows=part.rows[kept], targets=targets[kept]))
        return chosen

    def _choose_own(self, lengths: Array) -> Array:
        """Return which rows of this worker's groups belong to its micro-batches, sorted by update and
        micro-batch.

        The result has flat indices into the array of lengths.
        lengths: number of tokens of each row, shape (updates, groups, rows of a group). All are 0 if lengths
        are not known. Then ``balance_tokens`` gives rows to the micro-batches in turn.
        """
        updates, groups, count = lengths.shape
        # ``dealt`` has the rows of each micro-batch, as indices in its group. Its first axes are the update,
        # the group and the micro-batch. Adding ``starts`` gives indices in the flat array of all rows.
        dealt = balance_tokens(lengths.reshape(-1, count), self.group).reshape(
            updates, groups, self.group, -1
        )
        starts = np.arange(updates * groups).reshape(updates, groups, 1, 1) * count
        # The first rows of a group belong to its micro-batches in turn, so a row's number is that of the
        # micro-batch. ``is_own`` says which micro-batches of each group this worker computes.
        is_own = self.offsets[:, : self.group] % self.world_size == self.rank
        own: Array = (dealt + starts)[:, is_own].ravel()
        return own
