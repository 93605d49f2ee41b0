"""The loader: micro-batches for training, made in a thread before they are needed.

A row is an example, or several that are packed together. The loader has these steps. ``order.Dealer`` decides
which rows this worker gets. ``Decoder`` decodes their files in other threads. ``examples.gather_examples``
copies the examples into arrays. Masks are drawn if this is configured. ``batches.Form`` makes the tensors of
a batch.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import DatasetError
from bertdata.examples.columns import Array
from bertdata.io.open_files import allow_open_files
from trainer.data.batches import Batch, Form, Prepare
from trainer.data.cache.fetching import Fetcher
from trainer.data.cache.forecast import Forecast, make_forecast
from trainer.data.cache.shard_cache import ShardCache
from trainer.data.decoder import ChunkDecoder, Decoder
from trainer.data.examples import GatheredExamples, Rows, gather_examples
from trainer.data.mixture import bind_mixed_order
from trainer.data.order import Dealer, Order, Position, WorkerRows
from trainer.data.reading import Chunks, Reading
from trainer.data.row_decoder import RowDecoder, can_decode_single_rows
from trainer.data.streams import StreamDealer, StreamOrder

# The rows of several small updates are gathered together, up to this number, because each NumPy call costs
# about a microsecond.
_ROWS_AT_ONCE = 1024
_STREAM_ROWS_AT_ONCE = 4096  # more, because they come from more files, and each file costs some calls
_IDS_AT_ONCE = 1 << 21  # fewer rows if they are long, because an example takes 4 * max_seq_length bytes
_PREFETCHED_UPDATES = 2
_MOST_EPOCHS = 1 << 20  # of any training
_OPEN_FILES_REMEDY = "raise ulimit -Hn, or read fewer files at the same time: --open-files 8"

Item = TypeVar("Item")


class Update(NamedTuple):
    """The micro-batches that a worker computes in an update, and the data position after the update."""

    batches: Sequence[Batch]
    position: Position


class Prefetcher(Iterator[Item]):
    """An iterator that computes the items of another iterator in a thread, before they are needed.

    If the other iterator raises an exception, ``next`` raises it when the item would be due.
    items: the other iterator.
    depth: number of items that are computed in advance.
    """

    def __init__(self, items: Iterator[Item], depth: int) -> None:
        self.waited = 0.0
        """Seconds that the caller has waited for items, except for the first."""
        self._items = items
        self._thread = ThreadPoolExecutor(1)
        # There is a single thread, so that items are computed in order and never two at a time.
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
        """End the thread. After this, the iterator has no more items."""
        self._coming.clear()
        self._thread.shutdown(wait=False, cancel_futures=True)


class Loader(Prefetcher[Update]):
    """An iterator over a worker's updates, without end.

    An update has workers x accumulation x batch_size rows. They are consecutive in the order of the training,
    and are divided among the update's micro-batches as ``trainer.data.order`` describes. Micro-batch q is
    computed by worker q modulo workers. The last update of an epoch continues in the next epoch.

    Each worker reads only files with rows that it may need. If the dataset has no file with lengths, these
    are open_files / workers files at a time. If this is not a whole number, they are all open files. If the
    dataset has lengths, neighbouring micro-batches exchange examples. So a worker reads all open files, or
    with many workers the files of its group of micro-batches. Of TFRecord and MDS files, one of several
    workers decodes only its own rows (``trainer.data.row_decoder``). Other files are decoded as a whole: the
    next one when about a quarter of the current one is left, so up to twice as many files are in memory.

    rows: the rows to train on.
    form: makes batches from gathered examples, that is, from examples in arrays.
    batch_size: number of rows in a micro-batch.
    accumulation: number of micro-batches that each worker computes in an update.
    workers: number of workers.
    rank: number of this worker.
    seed: seed of the order.
    open_files: number of files that are read at the same time, over all workers.
    chunk_rows: 0, or the size of the chunks in which files are read. There are then ``open_files`` streams
    (``trainer.data.streams``).
    position: position in the data at which to begin.
    first_update: number of the first update, on which the masking rate may depend.
    prepare: function that is called in the thread with each batch, or with many micro-batches at once, for
    example to pin their memory.
    machine: ranks of the workers of this machine, which share a cache of remote files. Empty: this worker's.
    epochs: number of epochs that the training reads, from the position on.
    unchecked_files: names of files whose rows were used before the position, and which were not compared with
    their md5s then. The workers share them, and compare them first.
    warn: function that prints a warning.
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
        chunk_rows: int = 0,
        position: tuple[int, ...] = (0, 0),
        first_update: int = 0,
        prepare: Prepare = lambda batch: batch,
        machine: Sequence[int] = (),
        epochs: float = math.inf,
        unchecked_files: Sequence[str] = (),
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        assert min(batch_size, accumulation, open_files) > 0 <= rank < workers
        assert not chunk_rows or rows.is_shareable
        data = rows.data
        reading = Reading(open_files, chunk_rows)
        # The order is the same on every worker.
        order = make_order(data, seed, reading)
        open_files *= max(1, len(data.sources))
        start, total, files = Position(*position), order.examples, sum(rows > 0 for _, rows in data.file_rows)
        if not (start.epoch >= 0 and 0 <= start.examples < total):
            kind = "packed rows" if data.layout.packing else "examples"
            raise DatasetError(f"{data.name}: holds {total} {kind}, no position {tuple(position)}")
        # With streams, the log says in any case how many files each worker reads.
        if files < workers and rank == 0 and not chunk_rows:
            warn(f"{data.name}: {files} files for {workers} workers, so each file is read by several")
        self._rows, self._form, self._batch_size, self._prepare = rows, form, batch_size, prepare
        self._start = start
        kept_lengths = open_files + 2 if chunk_rows else 2 * open_files + 2
        self._decoder: Decoder
        round_rows = order.queues * order.run if isinstance(order, StreamOrder) else 0
        # One of several workers needs some rows of many files. Streams give few rows of each file at a time.
        if (workers > 1 or chunk_rows) and can_decode_single_rows(rows):
            self._decoder = RowDecoder(rows, Chunks(chunk_rows), kept_lengths, open_files, round_rows)
        elif chunk_rows:
            self._decoder = ChunkDecoder(rows, Chunks(chunk_rows), kept_lengths, open_files, round_rows)
        else:
            self._decoder = Decoder(rows, kept_lengths)
        self._dealer = make_dealer(
            rows,
            order,
            reading,
            lengths=self._decoder.lengths,
            batch_size=batch_size,
            accumulation=accumulation,
            workers=workers,
            rank=rank,
            seed=seed,
        )
        self._fetcher: Fetcher | None = None
        # Number of the update that the next call of ``next`` returns, and for each file the first update that
        # uses its rows.
        self._next_update, self._first_uses = first_update, dict[int, int]()
        with ExitStack() as opened:
            most_files, forecast = self._decoder.most_open_files, None
            if isinstance(data.copies, ShardCache) and rows.follows_order:
                forecast = forecast_needs(rows, self._dealer, machine)
                # A file that the cache keeps is open once more than a file that a worker reads.
                most_files += 2 * forecast.find_at_once(data.copies.sizes, start.epoch).files
            if most_files:
                opened.enter_context(allow_open_files(most_files, _OPEN_FILES_REMEDY))
            opened.callback(self._decoder.close)
            if isinstance(data.copies, ShardCache) and forecast is not None:
                place = order.find_place(start)
                until = place + math.ceil(min(epochs, _MOST_EPOCHS) * total)
                self._fetcher = Fetcher(data.copies, forecast, place=place, until=until)
                opened.callback(self._fetcher.close)
            names = set(unchecked_files)
            unchecked = [number for number, shard in enumerate(data.shards) if shard.name in names]
            self._own_unchecked = unchecked[rank::workers]
            self._decoder.begin_checks(self._own_unchecked)
            found = self.find_rows(self._dealer, start, first_update)
            super().__init__(self._updates(found, first_update), _PREFETCHED_UPDATES)
            self._opened = opened.pop_all()

    def count_own_streams(self) -> int:
        """Return how many streams this worker reads. ``chunk_rows`` must not be 0."""
        assert isinstance(self._dealer, StreamDealer)
        return self._dealer.count_own_streams(self._start)

    def find_rows(self, dealer: Dealer, start: Position, update: int) -> Iterator[WorkerRows]:
        """Yield the rows of this worker, a few updates at a time, without end.

        dealer: divides the rows among the workers.
        start: position in the data at which to begin.
        update: number of the first update.
        """
        return self._rows.find(dealer, start)

    def __next__(self) -> Update:
        update = super().__next__()
        self._next_update += 1
        return update

    def compare_files(self, seconds: float) -> list[str]:
        """Wait until this worker's files are compared with their md5s, as far as rows of them were used.

        Used are the rows of the updates that ``next`` has returned. Files of ``unchecked_files`` belong to
        them too.

        seconds: longest time to wait.
        Returns the names of the files that are not compared after this time.
        Raises ShardError if the md5 of one of the files is not the one in the manifest.
        """
        # The loader's thread may add files of later updates meanwhile.
        first_uses = self._first_uses.copy()
        used = [file for file, update in first_uses.items() if update < self._next_update]
        left = self._decoder.await_checks(dict.fromkeys([*self._own_unchecked, *used]), seconds)
        return [self._rows.data.shards[file].name for file in left]

    def close(self) -> None:
        """End the threads."""
        super().close()
        self._opened.close()

    def _updates(self, found: Iterator[WorkerRows], update: int) -> Iterator[Update]:
        """Decode the rows of one or several updates, gather them and make batches. Yield the updates one by
        one.

        found: this worker's rows, one or several updates at a time.
        update: number of the first update.
        """
        start = self._start
        for own in found:
            place = self._dealer.order.find_place(start)
            if self._fetcher is not None:
                self._fetcher.reach(place)
            start = own.positions[-1]
            # ``own`` has this worker's rows of one update, or of several small updates. The decoder's threads
            # first decode the files with these rows, then files that later rows will need.
            self._decoder.start(own.now, own.coming, place)
            gathered, size = self._gather(own, update), self._batch_size
            self._note_uses(own, update, gathered.rows // len(own.positions))
            batches = self._form.batches(gathered, size, self._prepare)
            # For example, 12 rows of 3 updates with 2 rows in a micro-batch are 2 micro-batches for each
            # update.
            for position in own.positions:
                yield Update(list(islice(batches, gathered.rows // size // len(own.positions))), position)
            update += len(own.positions)

    def _note_uses(self, own: WorkerRows, update: int, update_rows: int) -> None:
        """Note for each file that was not used before the first update that uses its rows.

        own: this worker's rows in one or several updates.
        update: number of the first of these updates.
        update_rows: number of the worker's rows in an update.
        """
        found = dict[int, int]()
        for part in own.parts:
            if part.file not in self._first_uses and len(part.targets):
                row = int(part.targets.min())
                if own.row_ends is not None:  # the targets are those of examples
                    row = int(np.searchsorted(own.row_ends, row, side="right"))
                first = update + row // update_rows
                found[part.file] = min(first, found.get(part.file, first))
        self._first_uses.update(found)

    def _gather(self, own: WorkerRows, update: int) -> GatheredExamples:
        """Copy the examples of this worker's rows into arrays, and draw masks if this is configured.

        update: number of the first update to which the rows belong.
        """
        pieces, ends = self._rows.list_examples(own, self._decoder.take_all(own.parts))
        gathered, masks = gather_examples(pieces, self._rows.layout, ends), self._rows.masks
        if masks is None:
            return gathered
        return masks.draw(gathered, own, self._rows.number_examples(own, pieces), update)


def make_order(data: OpenedDataset, seed: int, reading: Reading) -> Order:
    """Return the order of a dataset's rows. A mixture has an order for each source.

    seed: seed of the order.
    reading: how the files are read.
    """
    if reading.chunk_rows:
        assert not data.sources
        return StreamOrder(data.file_rows, seed=seed, reading=reading)
    make = bind_mixed_order(data.sources) if data.sources else Order
    return make(data.file_rows, seed=seed, open_files=reading.open_files)


def make_dealer(
    rows: Rows,
    order: Order,
    reading: Reading,
    *,
    lengths: Callable[[int], Array],
    batch_size: int,
    accumulation: int,
    workers: int,
    rank: int,
    seed: int,
) -> Dealer:
    """Return the object that finds the rows of a worker.

    rows: the rows to train on.
    order: the order of the rows.
    reading: how the files are read.
    lengths: function that returns the number of tokens of each row of a file.
    The other arguments are those of ``Loader``.
    """
    open_files, chunk_rows = reading.open_files * max(1, len(rows.data.sources)), reading.chunk_rows
    files = sum(count > 0 for _, count in rows.data.file_rows)
    # ``most_rows`` limits how many rows are gathered at a time. ``ahead`` says how many rows in advance files
    # are decoded. It is about a quarter of each open file, or of each open chunk.
    at_once = max(_STREAM_ROWS_AT_ONCE if chunk_rows else _ROWS_AT_ONCE, 2 * open_files)
    # Each example of a row has an array line of full length. Rows that are packed at load are no streams.
    row_ids = rows.layout.max_seq_length * (rows.examples_per_row if chunk_rows else 1)
    at_once = max(1, min(at_once, int(_IDS_AT_ONCE / row_ids)))
    piece_rows = min(order.examples // files, chunk_rows or order.examples)
    dealer_class: type[Dealer] = StreamDealer if chunk_rows else Dealer
    return dealer_class(
        order=order,
        lengths=lengths,
        by_lengths=rows.by_lengths,
        world_size=workers,
        rank=rank,
        micro_batches=workers * accumulation,
        batch_size=batch_size,
        seed=seed,
        most_rows=min(at_once, order.examples // workers),
        ahead=min(open_files, files) * piece_rows // 4,
    )


def forecast_needs(rows: Rows, dealer: Dealer, machine: Sequence[int]) -> Forecast:
    """Return the forecast of the files that the workers of a machine need.

    rows: the rows to train on.
    dealer: finds the rows of one of the workers.
    machine: ranks of the workers of the machine. Empty: only the dealer's worker.
    """
    dealers = [replace(dealer, rank=rank) for rank in machine or (dealer.rank,)]
    return make_forecast(dealers, rows.find_window(dealer))
