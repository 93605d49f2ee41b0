"""Batches for training, prefetched in a thread."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.errors import DatasetError
from trainer.data.at_load import MaskedAtLoad, Packing
from trainer.data.batches import Prepare
from trainer.data.compact import GatheredExamples, expand_rows, gather
from trainer.data.deal import Deal
from trainer.data.decoder import Decoder
from trainer.data.forms import Form, Made
from trainer.data.order import Order, Position
from trainer.data.prefetcher import Prefetcher
from trainer.data.shares import DealtShares, RowOrder, Share, Shares
from trainer.registry import find

_ROWS_AT_ONCE = 1024  # small updates are gathered several at a time: a NumPy call costs a microsecond
_PREFETCHED_UPDATES = 2


@dataclass(frozen=True, slots=True)
class Update(Generic[Made]):
    """One worker's micro-batches for one update, and the position in the order after it."""

    batches: Sequence[Made]
    position: Position


class Loader(Generic[Made]):
    """An endless iterator of updates, from ``position`` on.

    An update is workers x accumulation x batch_size consecutive rows of the order, each an example or one of
    the dataset's packed rows. They are dealt to its micro-batches as ``trainer.data.deal`` says; worker
    q mod workers computes micro-batch q. An epoch's last update continues in the next epoch.

    Each worker decodes the files of the examples among which its own are dealt. In a dataset without
    lengths these are open_files / workers at a time where that divides evenly, else all open files. With
    lengths they are all open files; of many workers, those of a group of micro-batches. The next file of a
    queue is decoded when about a quarter of the current one is left, so memory holds up to twice as many.

    packing: rows are packed at load (``trainer.extensions.loading.load_packing``), and each worker decodes
    all open files.
    Where masks are drawn at load, their rate is that of the update, the first of which is ``first_update``.
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
        position: tuple[int, ...] = (0, 0),
        first_update: int = 0,
        packing: Packing | None = None,
        bins: int | None = None,
        prepare: Prepare = lambda batch: batch,
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        assert min(batch_size, accumulation, open_files) > 0 <= rank < workers
        order = Order([(shard.name, _rows(shard)) for shard in data.shards], seed=seed, open_files=open_files)
        start, rows = Position(*position), order.examples
        if not (start.epoch >= 0 and 0 <= start.examples < rows):
            kind = "packed rows" if data.layout.packing else "examples"
            raise DatasetError(f"{data.name}: holds {rows} {kind}, no position {tuple(position)}")
        files = sum(shard.examples > 0 for shard in data.shards)
        if files < workers and rank == 0:
            warn(f"{data.name}: {files} files for {workers} workers, so each file is read by several")
        self._data, self._form, self._prepare = data, form, prepare
        self._batch_size, self._accumulation = batch_size, accumulation
        self._masks = (
            data.masks(update_rows=accumulation * batch_size, first_update=first_update)
            if isinstance(data, MaskedAtLoad)
            else None
        )
        self._layout = data.layout if packing is None else packing.layout(data)
        self._decoder = Decoder(data, kept_lengths=2 * open_files + 2, checks_lengths=packing is not None)
        by_lengths = data.has_lengths and self._layout.packing is None
        deal = Deal(
            workers=workers,
            rank=rank,
            accumulation=accumulation,
            batch_size=batch_size,
            by_lengths=by_lengths,
        )
        lengths = self._decoder.lengths
        update_rows = workers * accumulation * batch_size
        rows_at_once = min(max(_ROWS_AT_ONCE, 2 * open_files), rows // workers)
        ahead = min(open_files, files) * (rows // files) // 4
        rows_order: RowOrder = order
        if bins is not None:
            find_order = find("rows", "from length bins")
            shape = {"micro_batches": workers * accumulation, "batch_size": batch_size}
            rows_order = find_order(data, order, start, bins, lengths=lengths, seed=seed, **shape)
        shares: Shares
        if packing is not None:
            shares = packing.shares(
                data,
                order,
                offsets=deal.offsets.ravel(),
                update_rows=update_rows,
                lengths=lengths,
                seed=seed,
                rows_at_once=rows_at_once,
                ahead=ahead,
            )
        else:
            shares = DealtShares(
                rows_order,
                deal,
                update_rows=update_rows,
                lengths=lengths if by_lengths else None,
                rows_at_once=rows_at_once,
                ahead=ahead,
            )
        self._prefetched = Prefetcher(self._updates(shares.find(start)), _PREFETCHED_UPDATES)

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
        self._decoder.close()

    def _updates(self, shares: Iterator[Share]) -> Iterator[Update[Made]]:
        for share in shares:
            self._decoder.start(share.now, share.coming)
            batches = self._form.batches(self._gather(share), self._batch_size, self._prepare)
            for position in share.positions:
                yield Update(list(islice(batches, self._accumulation)), position)

    def _gather(self, share: Share) -> GatheredExamples:
        """The examples of this worker's rows."""
        layout, row_ends = self._layout, share.row_ends
        pieces = [(self._decoder.file(part.file), part.rows, part.targets) for part in share.parts]
        count = len(share.positions) * self._accumulation * self._batch_size
        if layout.packing is not None and row_ends is None:
            pieces, row_ends = expand_rows(pieces, count)
        gathered = gather(pieces, count if row_ends is None else int(row_ends[-1]), layout, row_ends)
        return gathered if self._masks is None else self._masks.draw(gathered, share.parts, pieces)


def _rows(shard: Shard) -> int:
    """The shard's rows in the order: packed rows, or examples."""
    return shard.examples if shard.rows is None else shard.rows
