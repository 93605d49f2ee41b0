"""The order in which training sees the examples: from seed, epoch, files and lanes, whoever computes it.

``lanes`` files are open at once. In each epoch the files are put in an order of their own and dealt to
the lanes, always to the one with the fewest examples so far; each file's examples are permuted; then
the lanes give one example in turn, leaving out those that have run out.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Position(NamedTuple):
    """Where training stands: the epoch, from 0, and the examples of it that are consumed."""

    epoch: int = 0
    examples: int = 0


class Piece(NamedTuple):
    """Examples of one file: its ``rows`` go to the ``places`` that were asked for."""

    file: int
    rows: Array
    places: Array


def numbers(count: int, *key: object) -> Array:
    """``count`` 64-bit numbers from the key, on every machine the same: SplitMix64 (Steele et al. 2014)."""
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

    def __init__(self, files: Sequence[tuple[str, int]], *, seed: int, lanes: int) -> None:
        self._files = files
        self._seed = seed
        self._lanes = min(lanes, sum(examples > 0 for _, examples in files))
        self.examples = sum(examples for _, examples in files)
        self._epoch = lru_cache(maxsize=2)(self._deal)
        self._permutation = lru_cache(maxsize=2 * lanes + 2)(self._permute)

    def advance(self, position: Position, examples: int) -> Position:
        """The position after that many more examples."""
        epochs, rest = divmod(position.examples + examples, self.examples)
        return Position(position.epoch + epochs, rest)

    def pieces(self, position: Position, offsets: Array) -> Iterator[Piece]:
        """What stands at the offsets from the position, file by file."""
        epochs, index = np.divmod(position.examples + offsets, self.examples)
        for epoch in np.unique(epochs):
            places = np.flatnonzero(epochs == epoch)
            number = position.epoch + int(epoch)
            for file, offset, here in self._epoch(number).find(index[places]):
                yield Piece(file, self._permutation(number, file)[offset], places[here])

    def _permute(self, epoch: int, file: int) -> Array:
        name, examples = self._files[file]
        return np.argsort(numbers(examples, self._seed, epoch, name), kind="stable").astype(np.uint32)

    def _deal(self, epoch: int) -> "_Epoch":
        lanes: list[list[int]] = [[] for _ in range(self._lanes)]
        totals = [0] * self._lanes
        used = [number for number, (_, examples) in enumerate(self._files) if examples]
        for file in sorted(used, key=lambda number: _digest(self._seed, epoch, self._files[number][0])):
            lane = totals.index(min(totals))
            lanes[lane].append(file)
            totals[lane] += self._files[file][1]
        return _Epoch(lanes, [examples for _, examples in self._files])


class _Epoch:
    """Which file and which of its examples stand at an index of one epoch.

    It is cut into stretches within which the same lanes are alive, so that division finds the lane.
    """

    def __init__(self, lanes: list[list[int]], examples: list[int]) -> None:
        self._lanes = lanes
        self._ends = [np.cumsum([examples[file] for file in lane]) for lane in lanes]
        totals = np.array([ends[-1] for ends in self._ends])
        self._turns = np.unique([0, *totals])[:-1]  # the first turn of each stretch
        alive = totals > self._turns[:, np.newaxis]
        self._widths = alive.sum(axis=1)
        self._alive = np.argsort(~alive, axis=1, kind="stable")  # living lanes first, in order
        lengths = np.diff([*self._turns, totals.max()])
        self._starts = np.cumsum([0, *(lengths * self._widths)[:-1]])

    def find(self, index: Array) -> Iterator[Piece]:
        """Pieces whose rows count from each file's start, before its permutation."""
        stretch = np.searchsorted(self._starts, index, side="right") - 1
        turn, beside = np.divmod(index - self._starts[stretch], self._widths[stretch])
        turn += self._turns[stretch]
        lane = self._alive[stretch, beside]
        for number in np.unique(lane):
            places = np.flatnonzero(lane == number)
            ends = self._ends[number]
            which = np.searchsorted(ends, turn[places], side="right")
            for nth in np.unique(which):
                here = places[which == nth]
                start = ends[nth - 1] if nth else 0
                yield Piece(self._lanes[number][nth], turn[here] - start, here)
