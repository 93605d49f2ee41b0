"""Updates for the training loop and batches for evaluation, made ahead of their use in a thread."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from bertdata.dataset.reader import Data
from bertdata.errors import DatasetError
from bertdata.examples import columns
from trainer.batches import Batch, Columns, collate
from trainer.data.order import Order, Piece, Position

Item = TypeVar("Item")
_ROWS_AT_ONCE = 1024  # small updates are gathered several at a time: a NumPy call costs a microsecond
_UPDATES_AHEAD = 2
_BATCHES_AHEAD = 4
_DECODERS = 2


class Ahead(Generic[Item]):
    """The items of an iterator, made in a thread, ``depth`` of them before they are asked for.

    What the iterator raises is raised here, in its turn.
    """

    def __init__(self, items: Iterator[Item], depth: int) -> None:
        self.waited = 0.0
        """Seconds that the caller spent waiting, without those for the first item."""
        self._items = items
        self._maker = ThreadPoolExecutor(1)
        self._coming = deque(self._maker.submit(next, items) for _ in range(depth))
        self._is_first = True

    def __iter__(self) -> "Ahead[Item]":
        return self

    def __next__(self) -> Item:
        if not self._coming:
            raise StopIteration
        start = time.perf_counter()
        item = self._coming.popleft().result()
        self.waited += 0 if self._is_first else time.perf_counter() - start
        self._is_first = False
        self._coming.append(self._maker.submit(next, self._items))
        return item

    def close(self) -> None:
        """End the thread; there are no more items."""
        self._coming.clear()
        self._maker.shutdown(wait=False, cancel_futures=True)


class Update(NamedTuple):
    """What one optimiser step of one worker consumes, and where training stands after it."""

    batches: list[Batch]
    position: Position


class Loader:
    """An endless iterator of updates, from ``position`` on.

    An update is workers x accumulation x batch_size consecutive examples of the order; its example i
    belongs to micro-batch q = i mod (workers x accumulation), which worker q mod workers computes. An
    epoch's last update continues in the next one. Each worker decodes the files that its own examples
    come from: lanes/workers at a time where that divides evenly, else all lanes. A file's successor
    in its lane is decoded when about a quarter of it is left, so up to twice as many are held.
    ``prepare`` is called in the thread with many examples at once; it may pin their memory.
    """

    def __init__(
        self,
        data: Data,
        *,
        batch_size: int,
        accumulation: int = 1,
        workers: int = 1,
        rank: int = 0,
        seed: int = 0,
        lanes: int = 8,
        position: tuple[int, int] = (0, 0),
        prepare: Callable[[Batch], Batch] = lambda batch: batch,
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        assert min(batch_size, accumulation, lanes) > 0 <= rank < workers
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
        self._mine = (micro_batch + workers * accumulation * np.arange(batch_size)).ravel()
        at_once = min(max(_ROWS_AT_ONCE, 2 * lanes), data.examples // workers)
        self._at_once = max(1, at_once // len(self._mine))
        self._lead = min(lanes, files) * (data.examples // files) // 4
        self._order = Order([(shard.name, shard.examples) for shard in data.shards], seed=seed, lanes=lanes)
        self._shelf: dict[int, Future[Columns]] = {}
        self._in_use: set[int] = set()
        self._decoders = ThreadPoolExecutor(_DECODERS)
        self._ahead = Ahead(self._updates(start), _UPDATES_AHEAD)

    def __iter__(self) -> "Loader":
        return self

    def __next__(self) -> Update:
        return next(self._ahead)

    @property
    def waited(self) -> float:
        """Seconds that the caller has waited for updates, without those for the first."""
        return self._ahead.waited

    def close(self) -> None:
        """End the threads."""
        self._ahead.close()
        self._decoders.shutdown(wait=False, cancel_futures=True)

    def _updates(self, position: Position) -> Iterator[Update]:
        updates = np.arange(self._at_once)[:, np.newaxis] * self._update_examples
        offsets = (updates + self._mine).ravel()
        lead = max(self._lead, self._at_once * self._update_examples)
        while True:
            pieces = list(self._order.pieces(position, offsets))
            self._fill_shelf(pieces, list(self._order.pieces(position, offsets + lead)))
            held = ((self._shelf[piece.file].result(), piece.rows, piece.places) for piece in pieces)
            gathered = self._prepare(collate(held, len(offsets), self._data.layout))
            starts = range(0, len(offsets), self._batch_size)
            batches = [gathered.cut(start, start + self._batch_size) for start in starts]
            for first in range(0, len(batches), self._accumulation):
                position = self._order.advance(position, self._update_examples)
                yield Update(batches[first : first + self._accumulation], position)

    def _fill_shelf(self, now: list[Piece], coming: list[Piece]) -> None:
        """Have the files of both decoded; forget those that were used and are in neither."""
        needed = dict.fromkeys(piece.file for piece in (*now, *coming))  # in this order
        for file in self._in_use - needed.keys():
            del self._shelf[file]
        for file in needed:
            if file not in self._shelf:
                self._shelf[file] = self._decoders.submit(self._decode, file)
        self._in_use = {piece.file for piece in now}

    def _decode(self, file: int) -> Columns:
        return Columns(self._data.batches(self._data.shards[file]), self._data.layout)


def evaluation_batches(
    data: Data,
    *,
    batch_size: int,
    workers: int = 1,
    rank: int = 0,
    limit: int | None = None,
    fixed_shapes: bool = False,
) -> Ahead[Batch]:
    """This worker's share of the first ``limit`` examples (default: all), in the files' order.

    The shares are runs of examples that follow one another. A share's last batch is shorter, or, with
    fixed_shapes, filled up with rows that count for nothing; then each worker also has as many batches
    as any other, lest one wait for another in a program that they run together.
    """
    total = data.examples if limit is None else min(limit, data.examples)
    share = range(total * rank // workers, total * (rank + 1) // workers)
    largest = -(-total // workers)
    least = -(-largest // batch_size) if fixed_shapes else 0

    def batches() -> Iterator[Batch]:
        made = 0
        for group in columns.regroup(data.run(share), batch_size):
            made += 1
            rows = np.arange(len(group))
            count = batch_size if fixed_shapes else len(group)
            yield collate([(Columns([group], data.layout), rows, rows)], count, data.layout)
        for _ in range(made, least):
            yield collate([], batch_size, data.layout)

    return Ahead(batches(), _BATCHES_AHEAD)
