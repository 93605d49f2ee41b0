"""The order of the examples in training: a function of seed, epoch, files and the number of open files.

In a dataset of packed rows, "examples" here are its rows.

In each epoch the files are sorted by a hash and dealt to ``open_files`` queues, each file to the queue with
the fewest examples so far. A queue reads its files one after another, each in a random permutation. The
queues give one example in turn; those that have run out are skipped.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
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
            start = self._ends[nth - 1] if nth else 0
            yield self._files[nth], place[here] - start, here
