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
from bertdata.examples import columns, groups
from bertdata.examples.columns import Array
from bertdata.examples.objectives import find_objective
from bertdata.records import IDS_ENDS, ColumnGroup, ExampleBatch, ShardLayout

_THREADS = 2
_COLUMNS = ("ids", "positions", "labels", "lengths", "segment_lengths", "masks", "pair_labels")


class CompactExamples:
    """Decoded examples without padding (2 bytes an id, 4 a mask, 13 an example), to gather from.

    An example's ids are the start of a window of S ids over the ids of all, so that one copy takes them. So
    are the items of every other group that has any number of them.
    """

    def __init__(self, batches: Iterable[Any], layout: ShardLayout) -> None:
        kind = find_objective(layout.objective).batch_type
        held = columns.join([*batches, columns.blank(kind, layout)])
        self._kind = kind
        self._bounds = {ends: np.insert(getattr(held, ends), 0, 0) for ends in kind.ragged()}
        self._values = {
            item.name: getattr(held, item.name)
            if item.ends is None
            else sliding_window_view(getattr(held, item.name), width_of(kind, item.ends, layout))
            for item in kind.columns()
            if item.name not in self._bounds
        }

    @property
    def lengths(self) -> Array:
        """The tokens of each example, without the blank one at the end."""
        return np.diff(self._bounds[IDS_ENDS].astype(np.int64))[:-1]

    def take(self, numbers: Array) -> dict[str, Array]:
        """The columns of the examples of these numbers, windows of items, and counts in the place of ends."""
        starts = {name: bounds[numbers] for name, bounds in self._bounds.items()}
        found = {name: bounds[numbers + 1] - starts[name] for name, bounds in self._bounds.items()}
        for item in self._kind.columns():
            if item.name not in found:
                found[item.name] = self._values[item.name][
                    numbers if item.ends is None else starts[item.ends]
                ]
        return found


def width_of(kind: type[ExampleBatch], ends: str, layout: ShardLayout) -> int:
    """The most items of an example in the columns whose end offsets these are."""
    group = next(item.group for item in kind.columns() if item.name == ends)
    return layout.size(group.size)


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
    segment_lengths: Array  # (N,): those of the first segment
    masks: Array  # (N,)
    pair_labels: Array  # (N,)
    row_ends: Array  # (rows,): the example after each row
    targets: dict[str, Array]  # (N,) or (N, most items) each: the task's own columns
    token_targets: dict[str, Array]  # (N, S) each: those with an item for each id

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def rows(self) -> int:
        return len(self.row_ends)

    def cut(self, start: int, stop: int) -> "GatheredExamples":
        """A view of the examples of rows ``start`` to ``stop``."""
        first, last = (int(self.row_ends[row - 1]) if row else 0 for row in (start, min(stop, self.rows)))
        own: dict[str, Any] = {name: getattr(self, name)[first:last] for name in _COLUMNS}
        for name in ("targets", "token_targets"):
            own[name] = {column: values[first:last] for column, values in getattr(self, name).items()}
        return replace(self, **own, row_ends=self.row_ends[start:stop] - first)


def gather(pieces: Iterable[Piece], layout: ShardLayout, row_ends: Array) -> GatheredExamples:
    """The examples of some rows, whose places the pieces fill. row_ends: the example after each row.

    Without masks they have none, without a segment all ids are in one.
    """
    kind = find_objective(layout.objective).batch_type
    count = int(row_ends[-1]) if len(row_ends) else 0
    made: dict[str, Any] = {}
    for item in kind.columns():
        shape = count if item.ends is None else (count, width_of(kind, item.ends, layout))
        made[item.name] = np.empty(shape, np.int32)
    for held, numbers, places in pieces:
        for name, values in held.take(numbers).items():
            made[name][places] = values
    own = [item for item in kind.columns() if item.group not in groups.PAIRS]
    for item in own:
        if item.ends not in (None, IDS_ENDS):  # behind an example's items stand those of others
            made[item.name] *= np.arange(made[item.name].shape[1]) < made[item.ends][:, np.newaxis]

    def column_of(group: ColumnGroup, without: Array) -> Array:
        return made[groups.only_column(kind, group).name] if groups.has_group(kind, group) else without

    lengths, none = made[IDS_ENDS], np.zeros(count, np.int32)
    no_slots = np.zeros((count, layout.max_predictions_per_seq), np.int32)
    masks = groups.Masks(no_slots, no_slots, none)
    if groups.has_group(kind, groups.MASKS):
        masks = groups.Masks(*(made[name] for name in groups.mask_names(kind)))
    return GatheredExamples(
        layout=layout,
        ids=made["ids"],
        positions=masks.places,
        labels=masks.originals,
        lengths=lengths,
        segment_lengths=column_of(groups.SEGMENT, lengths),
        masks=masks.ends,
        pair_labels=column_of(groups.PAIR_LABEL, none),
        row_ends=row_ends,
        targets={item.name: made[item.name] for item in own if item.ends != IDS_ENDS},
        token_targets={item.name: made[item.name] for item in own if item.ends == IDS_ENDS},
    )


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
