"""Decoded examples without padding, their decoding in threads, and examples gathered for batches."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.errors import ShardError
from bertdata.examples import columns
from bertdata.examples.columns import Array
from bertdata.examples.objectives import find_objective
from bertdata.records import ExampleBatch, ShardLayout

_THREADS = 2
_COLUMNS = ("ids", "positions", "labels", "lengths", "first_lengths", "masks", "next_labels")


class CompactExamples:
    """Decoded examples without padding (2 bytes an id, 4 a mask, 13 an example), to gather from.

    An example's ids are the start of a window of S ids over the ids of all, so that one copy takes them.
    targets: the other columns of one value an example that its objective has, by name. One without masked
    words has empty masks, one without a second segment has all ids in the first.
    """

    def __init__(self, batches: Iterable[Any], layout: ShardLayout) -> None:
        kind = find_objective(layout.objective).batch_type
        held: Any = columns.join([*batches, columns.blank(kind, layout)])
        self.ids = sliding_window_view(held.ids, layout.max_seq_length)
        self.bounds = np.insert(held.ends, 0, 0)
        if has_masks(kind):
            self.positions = sliding_window_view(held.positions, layout.max_predictions_per_seq)
            self.labels = sliding_window_view(held.labels, layout.max_predictions_per_seq)
            self.mask_bounds = np.insert(held.mask_ends, 0, 0)
        else:
            self.positions = self.labels = np.zeros((1, layout.max_predictions_per_seq), np.uint16)
            self.mask_bounds = np.zeros(len(held) + 1, np.uint32)
        self.first_lengths = getattr(held, "first_lengths", np.diff(self.bounds))
        self.next_labels = getattr(held, "next_labels", np.zeros(len(held), np.uint8))
        self.targets = {name: getattr(held, name) for name in target_names(kind)}

    @property
    def lengths(self) -> Array:
        """The tokens of each example, without the blank one at the end."""
        return np.diff(self.bounds.astype(np.int64))[:-1]

    def take(self, numbers: Array) -> dict[str, Array]:
        """The columns of the examples of these numbers, as GatheredExamples has them, and their targets."""
        start, mask_start = self.bounds[numbers], self.mask_bounds[numbers]
        return {
            "ids": self.ids[start],
            "positions": self.positions[mask_start],
            "labels": self.labels[mask_start],
            "lengths": self.bounds[numbers + 1] - start,
            "first_lengths": self.first_lengths[numbers],
            "masks": self.mask_bounds[numbers + 1] - mask_start,
            "next_labels": self.next_labels[numbers],
            **{name: values[numbers] for name, values in self.targets.items()},
        }


def has_masks(kind: type[ExampleBatch]) -> bool:
    """True where the examples have masked words."""
    return "mask_ends" in kind.ragged()


def target_names(kind: type[ExampleBatch]) -> list[str]:
    """The columns of one value an example that are neither of the input nor of pre-training."""
    known = {"first_lengths", "next_labels", *kind.ragged()}
    return [column.name for column in kind.columns() if column.ends is None and column.name not in known]


Piece = tuple[CompactExamples, Array, Array]
"""Examples of one file, the numbers of those to take, and the place that each goes to."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GatheredExamples:
    """N examples in windows of int32, row after row. Behind an example's own ids its window holds others'.

    A row is what the order of the training deals: one example, or a pack of several.
    """

    layout: ShardLayout
    ids: Array  # (N, S)
    positions: Array  # (N, P): from the example's start
    labels: Array  # (N, P)
    lengths: Array  # (N,): the ids of each
    first_lengths: Array  # (N,): those of the first segment
    masks: Array  # (N,)
    next_labels: Array  # (N,)
    row_ends: Array  # (rows,): the example after each row
    targets: dict[str, Array]  # (N,) each: the task's own columns

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def rows(self) -> int:
        return len(self.row_ends)

    def cut(self, start: int, stop: int) -> "GatheredExamples":
        """A view of the examples of rows ``start`` to ``stop``."""
        first, last = (int(self.row_ends[row - 1]) if row else 0 for row in (start, min(stop, self.rows)))
        own: dict[str, Any] = {name: getattr(self, name)[first:last] for name in _COLUMNS}
        targets = {name: values[first:last] for name, values in self.targets.items()}
        return replace(self, **own, row_ends=self.row_ends[start:stop] - first, targets=targets)


def gather(pieces: Iterable[Piece], layout: ShardLayout, row_ends: Array) -> GatheredExamples:
    """The examples of some rows, whose places the pieces fill. row_ends: the example after each row."""
    count = int(row_ends[-1]) if len(row_ends) else 0
    masks = (count, layout.max_predictions_per_seq)
    shapes = {"ids": (count, layout.max_seq_length), "positions": masks, "labels": masks}
    names = [*_COLUMNS, *target_names(find_objective(layout.objective).batch_type)]
    made: dict[str, Any] = {name: np.empty(shapes.get(name, count), np.int32) for name in names}
    for held, numbers, places in pieces:
        for name, values in held.take(numbers).items():
            made[name][places] = values
    own = {name: made.pop(name) for name in _COLUMNS}
    return GatheredExamples(layout=layout, **own, row_ends=row_ends, targets=made)


class Decoder:
    """The files that are in use or will be soon, decoded in threads, and the lengths of files' examples.

    decode: makes the examples of a file. kept_lengths: files whose lengths are remembered.
    """

    def __init__(
        self, data: OpenedDataset, decode: Callable[[Shard], CompactExamples], kept_lengths: int
    ) -> None:
        self._data, self._decode = data, decode
        self._files: dict[int, Future[CompactExamples]] = {}
        self._in_use: set[int] = set()
        self._threads = ThreadPoolExecutor(_THREADS)
        self.lengths = lru_cache(maxsize=kept_lengths)(self._find_lengths)

    def start(self, now: Iterable[int], coming: Iterable[int]) -> None:
        """Start decoding the files of both. Drop files that were used and are in neither."""
        used = list(now)
        needed = dict.fromkeys([*used, *coming])  # a set that keeps this order
        for file in self._in_use - needed.keys():
            del self._files[file]
        for file in needed:
            self._submit(file)
        self._in_use = set(used)

    def file(self, number: int) -> CompactExamples:
        """The examples of a file that ``start`` was asked for."""
        return self._files[number].result()

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _find_lengths(self, number: int) -> Array:
        """The tokens of a file's examples, from the file itself where the dataset has no lengths.

        ShardError names the first example that is longer than the layout allows.
        """
        shard, most = self._data.shards[number], self._data.layout.max_seq_length
        if not self._data.has_lengths:
            self._submit(number)
            self._in_use.add(number)
            return self.file(number).lengths
        found = np.asarray(self._data.lengths(shard))
        if len(wrong := np.flatnonzero((found > most) | (found == 0))):
            record = f"{shard.lengths_path}: record {wrong[0]}"
            raise ShardError(f"{record}: {found[wrong[0]]} tokens, expected 1 to {most}")
        return found

    def _submit(self, number: int) -> None:
        if number not in self._files:
            self._files[number] = self._threads.submit(self._decode, self._data.shards[number])
