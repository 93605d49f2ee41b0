"""The loader: micro-batches for training, made in a thread before they are needed.

Its steps: ``order.Dealer`` decides which rows this worker gets, ``Decoder`` decodes their files in other
threads, ``examples.gather_examples`` copies the examples into arrays, masks are drawn if configured, and
``batches.Form`` makes tensors.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np

from bertdata.errors import DatasetError, ShardError
from bertdata.examples.columns import Array
from trainer.data.batches import Batch, Form, Prepare
from trainer.data.examples import CompactExamples, GatheredExamples, Rows, gather_examples
from trainer.data.mixture import bind_mixed_order
from trainer.data.order import Dealer, Order, OwnRows, Position

# small updates are gathered several at a time, because each NumPy call costs about a microsecond
_ROWS_AT_ONCE = 1024
_PREFETCHED_UPDATES = 2
_DECODERS = 2  # threads

Item = TypeVar("Item")


class Update(NamedTuple):
    """A worker's micro-batches for one update, and the position in the data after the update."""

    batches: Sequence[Batch]
    position: Position


class Prefetcher(Iterator[Item]):
    """Iterator over the items of another iterator, of which ``depth`` are computed ahead in a thread.

    If the inner iterator raises an exception, ``next`` raises it at the item's place.
    """

    def __init__(self, items: Iterator[Item], depth: int) -> None:
        self.waited = 0.0
        """Seconds that the caller has waited for items, except for the first."""
        self._items = items
        self._thread = ThreadPoolExecutor(1)
        # One thread runs the iterator, so that next() is called in order and never by two threads.
        self._coming = deque(self._thread.submit(next, items) for _ in range(depth))
        self._is_first = True

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
        """End the thread. No more items follow."""
        self._coming.clear()
        self._thread.shutdown(wait=False, cancel_futures=True)


class Loader(Prefetcher[Update]):
    """Endless iterator over a worker's updates, starting at ``position``.

    An update consists of workers x accumulation x batch_size consecutive rows of the order, dealt to its
    micro-batches as ``trainer.data.order`` describes. Worker q mod workers computes micro-batch q. The last
    update of an epoch continues in the next epoch.

    Each worker decodes only files with rows that it may need. If the dataset has no lengths, it decodes
    open_files / workers files at a time, or all open files if the division leaves a remainder. If the dataset
    has lengths, neighbouring micro-batches exchange examples, so a worker decodes all open files, or with
    many workers the files of its group of micro-batches. The next file of a queue is decoded when about a
    quarter of the current file is left, so memory holds up to twice as many files.

    form: makes batches from gathered examples. batch_size: rows of a micro-batch.
    accumulation: micro-batches per update that each worker computes.
    first_update: number of the first update, for masking rates that change.
    prepare: called in the thread with each batch, or with many micro-batches of rows at once. It may pin
    memory.
    """

    def __init__(
        self,
        rows: Rows,
        *,
        form: Form,
        batch_size: int,
        accumulation: int = 1,
        workers: int = 1,
        rank: int = 0,
        seed: int = 0,
        open_files: int = 8,
        position: tuple[int, ...] = (0, 0),
        first_update: int = 0,
        prepare: Prepare = lambda batch: batch,
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        assert min(batch_size, accumulation, open_files) > 0 <= rank < workers
        data = rows.data
        # The order is the same on every worker. A mixture has an order for each source.
        make_order = bind_mixed_order(data.sources) if data.sources else Order
        order = make_order(data.file_rows, seed=seed, open_files=open_files)
        open_files *= max(1, len(data.sources))
        start, total, files = Position(*position), order.examples, sum(rows > 0 for _, rows in data.file_rows)
        if not (start.epoch >= 0 and 0 <= start.examples < total):
            kind = "packed rows" if data.layout.packing else "examples"
            raise DatasetError(f"{data.name}: holds {total} {kind}, no position {tuple(position)}")
        if files < workers and rank == 0:
            warn(f"{data.name}: {files} files for {workers} workers, so each file is read by several")
        self._rows, self._form, self._batch_size, self._prepare = rows, form, batch_size, prepare
        self._decoder = Decoder(rows, kept_lengths=2 * open_files + 2)
        # most_rows bounds how many rows are gathered at a time. ahead: how far in advance files are decoded,
        # in rows: about a quarter of each open file.
        dealer = Dealer(
            order=order,
            lengths=self._decoder.lengths,
            by_lengths=rows.by_lengths,
            workers=workers,
            rank=rank,
            micro_batches=workers * accumulation,
            batch_size=batch_size,
            seed=seed,
            most_rows=min(max(_ROWS_AT_ONCE, 2 * open_files), total // workers),
            ahead=min(open_files, files) * (total // files) // 4,
        )
        found = self.find_rows(dealer, start, first_update)
        super().__init__(self._updates(found, first_update), _PREFETCHED_UPDATES)

    def find_rows(self, dealer: Dealer, start: Position, update: int) -> Iterator[OwnRows]:
        """Yield this worker's rows in an endless sequence that begins at the position. update: number of the
        first update.
        """
        return self._rows.find(dealer, start)

    def close(self) -> None:
        """End the threads."""
        super().close()
        self._decoder.close()

    def _updates(self, found: Iterator[OwnRows], update: int) -> Iterator[Update]:
        """Decode, gather and batch the rows of one or several updates, then yield the updates one by one."""
        for own in found:
            # ``own`` has this worker's rows of one update, or of several small ones. The decoder's threads
            # begin with the files that hold these rows, then go on with those that the next rows will need.
            self._decoder.start(own.now, own.coming)
            gathered, size = self._gather(own, update), self._batch_size
            batches = self._form.batches(gathered, size, self._prepare)
            # 12 rows for 3 updates and 2 rows per micro-batch -> each update takes the next 2 micro-batches.
            for position in own.positions:
                yield Update(list(islice(batches, gathered.rows // size // len(own.positions))), position)
            update += len(own.positions)

    def _gather(self, own: OwnRows, update: int) -> GatheredExamples:
        """Return the examples of this worker's rows, with masks. update: number of their first update."""
        pieces = [(self._decoder.file(part.file), part.rows, part.targets) for part in own.parts]
        pieces, ends = self._rows.expand(own, pieces)
        gathered, masks = gather_examples(pieces, self._rows.layout, ends), self._rows.masks
        return gathered if masks is None else masks.draw(gathered, own, pieces, update)


class Decoder:
    """Decodes, in threads, the files that are in use or will be used soon. Also remembers their lengths.

    kept_lengths: number of files for which lengths are remembered.
    """

    def __init__(self, rows: Rows, kept_lengths: int) -> None:
        self._data, self._decode = rows.data, rows.decode
        self._files: dict[int, Future[CompactExamples]] = {}
        self._in_use: set[int] = set()
        self._threads = ThreadPoolExecutor(_DECODERS)
        self.lengths = lru_cache(maxsize=kept_lengths)(self._find_lengths)

    def start(self, now: Iterable[int], coming: Iterable[int]) -> None:
        """Start to decode these files. Forget the files in use that are not among them.

        now: numbers of the files that are needed first. coming: files that are needed next.
        """
        used = list(now)
        # a dict without values serves as a set that keeps this order
        needed = dict.fromkeys([*used, *coming])
        for file in self._in_use - needed.keys():
            del self._files[file]
        for file in needed:
            self._submit(file)
        self._in_use = set(used)

    def file(self, number: int) -> CompactExamples:
        """Return the examples of a file that ``start`` was called with. Waits until it is decoded."""
        return self._files[number].result()

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _find_lengths(self, number: int) -> Array:
        """Return the tokens of a file's examples, from the lengths file or by decoding the file.

        Raises ShardError with the first example that is empty or longer than the layout allows.
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
        """Start to decode the file unless its decoding was started before."""
        if number not in self._files:
            self._files[number] = self._threads.submit(self._decode, self._data.shards[number])
