"""Batches for training, prefetched in a thread."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Generic

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import DatasetError
from bertdata.examples.columns import Array
from trainer.data.compact import CompactExamples, gather
from trainer.data.deal import Deal
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

    An update is workers x accumulation x batch_size consecutive examples of the order, dealt to its
    micro-batches as ``trainer.data.deal`` says; worker q mod workers computes micro-batch q. An epoch's last
    update continues in the next epoch.

    Each worker decodes the files of the examples among which its own are dealt. In a dataset without
    lengths these are open_files / workers at a time where that divides evenly, else all open files. With
    lengths they are all open files; of many workers, those of a group of micro-batches. The next file of a
    queue is decoded when about a quarter of the current one is left, so memory holds up to twice as many.

    ``prepare`` gets the batches in the thread, rows many micro-batches at once; it may pin their memory.
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
        self._own_examples = accumulation * batch_size
        self._update_examples = workers * self._own_examples
        self._deal = Deal(
            workers=workers,
            rank=rank,
            accumulation=accumulation,
            batch_size=batch_size,
            by_lengths=data.has_lengths,
        )
        at_once = min(max(_ROWS_AT_ONCE, 2 * open_files), data.examples // workers)
        self._updates_at_once = max(1, at_once // self._deal.offsets.size)
        self._decode_ahead = min(open_files, files) * (data.examples // files) // 4
        self._order = Order(
            [(shard.name, shard.examples) for shard in data.shards], seed=seed, open_files=open_files
        )
        self._lengths = lru_cache(maxsize=2 * open_files + 2)(self._read_lengths)
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
        updates = np.arange(self._updates_at_once)[:, np.newaxis, np.newaxis] * self._update_examples
        offsets = updates + self._deal.offsets
        ahead = max(self._decode_ahead, self._updates_at_once * self._update_examples)
        while True:
            now = list(self._order.find(position, offsets.ravel()))
            self._start_decoding(now, list(self._order.find(position, offsets.ravel() + ahead)))
            own = self._find_own(now, offsets.shape)
            pieces = ((self._decoded[part.file].result(), part.rows, part.targets) for part in own)
            gathered = gather(pieces, self._updates_at_once * self._own_examples, self._data.layout)
            batches = self._form.batches(gathered, self._batch_size, self._prepare)
            for _ in range(self._updates_at_once):
                position = self._order.advance(position, self._update_examples)
                yield Update(list(islice(batches, self._accumulation)), position)

    def _find_own(self, found: list[FileRows], shape: tuple[int, ...]) -> list[FileRows]:
        """Those of the examples found that are this worker's; targets: their rows in its batches."""
        lengths = np.zeros(shape, np.int64)
        if self._data.has_lengths:
            for part in found:
                lengths.ravel()[part.targets] = self._lengths(part.file)[part.rows]
        own = self._deal.own(lengths)
        places = np.full(lengths.size, -1)
        places[own] = np.arange(len(own))
        chosen = []
        for part in found:
            targets = places[part.targets]
            kept = targets >= 0
            chosen.append(FileRows(part.file, part.rows[kept], targets[kept]))
        return chosen

    def _read_lengths(self, file: int) -> Array:
        return np.asarray(self._data.lengths(self._data.shards[file]))

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
