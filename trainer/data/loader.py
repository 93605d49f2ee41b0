"""Batches for training and evaluation, prefetched in a thread."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import DatasetError
from bertdata.examples import columns
from trainer.data.batches import CompactExamples, RowBatch, collate
from trainer.data.order import FileRows, Order, Position

Item = TypeVar("Item")
_ROWS_AT_ONCE = 1024  # small updates are gathered several at a time: a NumPy call costs a microsecond
_PREFETCHED_UPDATES = 2
_PREFETCHED_BATCHES = 4
_DECODER_THREADS = 2


class Prefetcher(Generic[Item]):
    """The items of an iterator, ``depth`` of them computed in a thread before they are asked for.

    An exception of the iterator is raised in place of its item.
    """

    def __init__(self, items: Iterator[Item], depth: int) -> None:
        self.waited = 0.0
        """Seconds that the caller spent waiting, without those for the first item."""
        self._items = items
        self._thread = ThreadPoolExecutor(1)
        self._coming = deque(self._thread.submit(next, items) for _ in range(depth))
        self._is_first = True

    def __iter__(self) -> "Prefetcher[Item]":
        return self

    def __next__(self) -> Item:
        if not self._coming:
            raise StopIteration
        start = time.perf_counter()
        item = self._coming.popleft().result()
        self.waited += 0 if self._is_first else time.perf_counter() - start
        self._is_first = False
        self._coming.append(self._thread.submit(next, self._items))
        return item

    def close(self) -> None:
        """End the thread; no more items follow."""
        self._coming.clear()
        self._thread.shutdown(wait=False, cancel_futures=True)


class Update(NamedTuple):
    """One worker's micro-batches for one update, and the position in the order after it."""

    batches: list[RowBatch]
    position: Position


class Loader:
    """An endless iterator of updates, from ``position`` on.

    An update is workers x accumulation x batch_size consecutive examples of the order; its example i
    belongs to micro-batch q = i mod (workers x accumulation), which worker q mod workers computes. An
    epoch's last update continues in the next epoch. Each worker decodes only the files that its own
    examples come from: open_files / workers at a time where that divides evenly, else all open files. The
    next file of a queue is decoded when about a quarter of the current one is left, so memory holds up to
    twice as many files. ``prepare`` gets many examples at once, in the thread; it may pin their memory.
    """

    def __init__(
        self,
        data: OpenedDataset,
        *,
        batch_size: int,
        accumulation: int = 1,
        workers: int = 1,
        rank: int = 0,
        seed: int = 0,
        open_files: int = 8,
        position: tuple[int, int] = (0, 0),
        prepare: Callable[[RowBatch], RowBatch] = lambda batch: batch,
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        assert min(batch_size, accumulation, open_files) > 0 <= rank < workers
        start = Position(*position)
        if not (start.epoch >= 0 and 0 <= start.examples < data.examples):
            raise DatasetError(f"{data.name}: holds {data.examples} examples, no position {tuple(position)}")
        files = sum(shard.examples > 0 for shard in data.shards)
        if files < workers and rank == 0:
            warn(f"{data.name}: {files} files for {workers} workers, so each file is read by several")
        self._data = data
        self._batch_size, self._accumulation, self._prepare = batch_size, accumulation, prepare
        self._update_examples = workers * accumulation * batch_size
        micro_batch = rank + workers * np.arange(accumulation)[:, np.newaxis]
        self._own_offsets = (micro_batch + workers * accumulation * np.arange(batch_size)).ravel()
        at_once = min(max(_ROWS_AT_ONCE, 2 * open_files), data.examples // workers)
        self._updates_at_once = max(1, at_once // len(self._own_offsets))
        self._decode_ahead = min(open_files, files) * (data.examples // files) // 4
        self._order = Order(
            [(shard.name, shard.examples) for shard in data.shards], seed=seed, open_files=open_files
        )
        self._decoded: dict[int, Future[CompactExamples]] = {}
        self._in_use: set[int] = set()
        self._decoders = ThreadPoolExecutor(_DECODER_THREADS)
        self._prefetched = Prefetcher(self._updates(start), _PREFETCHED_UPDATES)

    def __iter__(self) -> "Loader":
        return self

    def __next__(self) -> Update:
        return next(self._prefetched)

    @property
    def waited(self) -> float:
        """Seconds that the caller has waited for updates, without those for the first."""
        return self._prefetched.waited

    def close(self) -> None:
        """End the threads."""
        self._prefetched.close()
        self._decoders.shutdown(wait=False, cancel_futures=True)

    def _updates(self, position: Position) -> Iterator[Update]:
        updates = np.arange(self._updates_at_once)[:, np.newaxis] * self._update_examples
        offsets = (updates + self._own_offsets).ravel()
        ahead = max(self._decode_ahead, self._updates_at_once * self._update_examples)
        while True:
            now = list(self._order.find(position, offsets))
            self._start_decoding(now, list(self._order.find(position, offsets + ahead)))
            pieces = ((self._decoded[part.file].result(), part.rows, part.targets) for part in now)
            gathered = self._prepare(collate(pieces, len(offsets), self._data.layout))
            starts = range(0, len(offsets), self._batch_size)
            batches = [gathered.cut(start, start + self._batch_size) for start in starts]
            for first in range(0, len(batches), self._accumulation):
                position = self._order.advance(position, self._update_examples)
                yield Update(batches[first : first + self._accumulation], position)

    def _start_decoding(self, now: list[FileRows], coming: list[FileRows]) -> None:
        """Start decoding the files of both; drop files that were used and are in neither."""
        needed = dict.fromkeys(part.file for part in (*now, *coming))  # a set that keeps this order
        for file in self._in_use - needed.keys():
            del self._decoded[file]
        for file in needed:
            if file not in self._decoded:
                self._decoded[file] = self._decoders.submit(self._decode, file)
        self._in_use = {part.file for part in now}

    def _decode(self, file: int) -> CompactExamples:
        return CompactExamples(self._data.batches(self._data.shards[file]), self._data.layout)


def evaluation_batches(
    data: OpenedDataset,
    *,
    batch_size: int,
    workers: int = 1,
    rank: int = 0,
    limit: int | None = None,
    fixed_shapes: bool = False,
) -> Prefetcher[RowBatch]:
    """This worker's share of the first ``limit`` examples (default: all), in the order of the files.

    Each share is a run of consecutive examples. A share's last batch is shorter, or, with fixed_shapes,
    padded with rows of weight 0; then each worker also gets the same number of batches, so that no
    worker waits for another in a program that they run together.
    """
    total = data.examples if limit is None else min(limit, data.examples)
    share = range(total * rank // workers, total * (rank + 1) // workers)
    largest = -(-total // workers)
    least = -(-largest // batch_size) if fixed_shapes else 0

    def batches() -> Iterator[RowBatch]:
        made = 0
        for group in columns.regroup(data.run(share), batch_size):
            made += 1
            rows = np.arange(len(group))
            count = batch_size if fixed_shapes else len(group)
            yield collate([(CompactExamples([group], data.layout), rows, rows)], count, data.layout)
        for _ in range(made, least):
            yield collate([], batch_size, data.layout)

    return Prefetcher(batches(), _PREFETCHED_BATCHES)
