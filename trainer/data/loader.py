"""Batches for training, prefetched in a thread."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Generic

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import DatasetError
from trainer.data.compact import CompactExamples, gather
from trainer.data.forms import Form, Made, Prepare
from trainer.data.order import FileRows, Order, Position
from trainer.data.prefetcher import Prefetcher

_ROWS_AT_ONCE = 1024  # small updates are gathered several at a time: a NumPy call costs a microsecond
_PREFETCHED_UPDATES = 2
_DECODER_THREADS = 2


@dataclass(frozen=True, slots=True)
class Update(Generic[Made]):
    """One worker's micro-batches for one update, and the position in the order after it."""

    batches: Sequence[Made]
    position: Position


class Loader(Generic[Made]):
    """An endless iterator of updates, from ``position`` on.

    An update is workers x accumulation x batch_size consecutive examples of the order; its example i
    belongs to micro-batch q = i mod (workers x accumulation), which worker q mod workers computes. An
    epoch's last update continues in the next epoch. Each worker decodes only the files that its own
    examples come from: open_files / workers at a time where that divides evenly, else all open files. The
    next file of a queue is decoded when about a quarter of the current one is left, so memory holds up to
    twice as many files. ``prepare`` gets the batches, rows many micro-batches at once, in the thread; it may
    pin their memory.
    """

    def __init__(
        self,
        data: OpenedDataset,
        *,
        form: Form[Made],
        batch_size: int,
        accumulation: int = 1,
        workers: int = 1,
        rank: int = 0,
        seed: int = 0,
        open_files: int = 8,
        position: tuple[int, int] = (0, 0),
        prepare: Prepare = lambda batch: batch,
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
        self._batch_size, self._accumulation = batch_size, accumulation
        self._form, self._prepare = form, prepare
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

    def __iter__(self) -> "Loader[Made]":
        return self

    def __next__(self) -> Update[Made]:
        return next(self._prefetched)

    @property
    def waited(self) -> float:
        """Seconds that the caller has waited for updates, without those for the first."""
        return self._prefetched.waited

    def close(self) -> None:
        """End the threads."""
        self._prefetched.close()
        self._decoders.shutdown(wait=False, cancel_futures=True)

    def _updates(self, position: Position) -> Iterator[Update[Made]]:
        updates = np.arange(self._updates_at_once)[:, np.newaxis] * self._update_examples
        offsets = (updates + self._own_offsets).ravel()
        ahead = max(self._decode_ahead, self._updates_at_once * self._update_examples)
        while True:
            now = list(self._order.find(position, offsets))
            self._start_decoding(now, list(self._order.find(position, offsets + ahead)))
            pieces = ((self._decoded[part.file].result(), part.rows, part.targets) for part in now)
            gathered = gather(pieces, len(offsets), self._data.layout)
            batches = self._form.batches(gathered, self._batch_size, self._prepare)
            for _ in range(self._updates_at_once):
                position = self._order.advance(position, self._update_examples)
                yield Update(list(islice(batches, self._accumulation)), position)

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
