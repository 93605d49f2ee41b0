"""Forecast of the files that the workers of a machine need, from the order of the examples.

Places are counted in examples from the beginning of the first epoch. If a worker reads files whole, it needs
a file until it has decoded the file, which is before the place of the file's first example. If it reads files
in chunks, it needs the file up to the place of the last example.

The forecast of streams is a sample: the dealers of the machine's workers are asked at some places of the
epoch which streams they read. A file that is needed in between is fetched when a worker asks for it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from bertdata.examples.columns import Array
from trainer.data.mixture import MixedOrder
from trainer.data.order import Dealer, Order, Position
from trainer.data.streams import StreamDealer, StreamOrder

NEVER = int(np.iinfo(np.int64).max)
"""Place of a need that is not known."""

_SAMPLES = 16
"""Number of places of an epoch at which workers are asked for their streams."""
_KEPT_EPOCHS = 4
_UPDATES_BETWEEN_WORKERS = 4
"""Largest number of updates between the rows that two workers of a machine gather at the same time, beyond
the updates that are gathered together. A loader makes two updates in advance.
"""

_MANY = 1_000_000
"""Number of examples of a mixture over which the shares of its sources are measured."""


class Margins(NamedTuple):
    """Numbers of examples before and after its own place for which a file is needed.

    before: examples before the first example of a file, from which on workers read the file ahead.
    after: examples after the last place at which a worker needs the file. Other workers may be as far behind.
    """

    before: int
    after: int


class AtOnce(NamedTuple):
    """The most that is needed at the same time: a number of files, and their bytes."""

    files: int
    bytes: int


class Forecast(Protocol):
    """Interface of a forecast of the files that the workers of a machine need."""

    def find_next(self, place: int) -> Array:
        """Return for each file the place of its next need, as seen from a place in the order.

        It may be before that place, if workers still need the file. NEVER for a file that is needed neither
        in this epoch nor in the next.
        """
        ...

    def is_near(self, place: int, needs: Array) -> Array:
        """Return for each file whether it is needed now or is read ahead.

        needs: the result of ``find_next`` for the place.
        """
        ...

    def find_needed(self, epoch: int) -> Array:
        """Return for each file whether a worker of the machine needs it in an epoch."""
        ...

    def find_at_once(self, sizes: Array, epoch: int) -> AtOnce:
        """Return how much is needed at the same time in an epoch and at the beginning of the next.

        sizes: bytes of each file.
        """
        ...


def make_forecast(dealers: Sequence[Dealer], window: int = 0) -> Forecast:
    """Return the forecast for the workers of a machine.

    dealers: the dealers of these workers.
    window: number of consecutive examples that are put into another order. A worker needs them all.
    """
    first = dealers[0]
    together = first.updates * first.update_rows
    margins = Margins(
        before=first.find_distance_ahead() + together + 2 * window,
        after=together + _UPDATES_BETWEEN_WORKERS * first.update_rows + window,
    )
    if isinstance(first.order, MixedOrder):
        return MixtureForecast(first.order, margins)
    return OrderForecast(first.order, margins, dealers)


class OrderForecast:
    """Forecast for the files of one order.

    order: the order of the examples.
    margins: how long before and after its place a file is needed.
    dealers: the dealers of the machine's workers, which say who reads which streams. If there are none, all
        files are needed.
    """

    def __init__(self, order: Order, margins: Margins, dealers: Sequence[Dealer] = ()) -> None:
        self._order, self._margins = order, margins
        self._is_chunked = isinstance(order, StreamOrder)
        # Workers of the same group of micro-batches read the same streams.
        by_parts = {tuple(one.parts.tolist()): one for one in dealers if isinstance(one, StreamDealer)}
        parts = {part for parts in by_parts for part in parts}
        groups = dealers[0].micro_batches // dealers[0].group if dealers else 0
        self._dealers = list(by_parts.values()) if len(parts) < groups else []
        self._needs = dict[int, tuple[Array, Array]]()

    def find_next(self, place: int) -> Array:
        epoch = place // self._order.examples
        found: Array | None = None
        # A need of the previous epoch may not be over for workers that are behind.
        for number in range(epoch + 1, max(epoch - 2, -1), -1):
            firsts, ends = self._list_needs(number)
            if found is None:
                found = firsts.copy()
            else:
                is_open = (firsts != NEVER) & (ends >= place - self._margins.after)
                found = np.where(is_open, firsts, found)
        assert found is not None
        return found

    def is_near(self, place: int, needs: Array) -> Array:
        found: Array = (needs != NEVER) & (needs <= place + self._margins.before)
        return found

    def find_needed(self, epoch: int) -> Array:
        found: Array = self._list_needs(epoch)[0] != NEVER
        return found

    def find_at_once(self, sizes: Array, epoch: int) -> AtOnce:
        firsts, ends = (
            np.concatenate(both)
            for both in zip(self._list_needs(epoch), self._list_needs(epoch + 1), strict=True)
        )
        used = firsts != NEVER
        number = np.tile(np.arange(len(sizes)), 2)[used]
        begins, ends = firsts[used] - self._margins.before, ends[used] + self._margins.after
        # Go through the places at which needs begin and end. A need that ends where another begins comes
        # first.
        places = np.concatenate([begins, ends + 1])
        change = np.repeat([1, -1], len(begins))
        order = np.lexsort((change, places))
        files = np.cumsum(change[order])
        amounts = np.cumsum((change * np.tile(sizes[number], 2))[order])
        most = int(np.argmax(amounts))
        # A file may be needed for the end of an epoch and for the beginning of the next.
        needed = np.unique(number)
        return AtOnce(min(int(files[most]), len(needed)), min(int(amounts[most]), int(sizes[needed].sum())))

    def _list_needs(self, epoch: int) -> tuple[Array, Array]:
        """Return for each file the first and the last place at which it is needed in an epoch.

        Both are NEVER for a file that is not needed.
        """
        if epoch not in self._needs:
            while len(self._needs) >= _KEPT_EPOCHS:
                del self._needs[next(iter(self._needs))]
            self._needs[epoch] = self._compute_needs(epoch)
        return self._needs[epoch]

    def _compute_needs(self, epoch: int) -> tuple[Array, Array]:
        """Compute what ``_list_needs`` returns."""
        queues, firsts, lasts = self._order.list_spans(epoch)
        needed = queues >= 0
        if self._dealers:
            needed &= self._find_read(epoch, queues, firsts, lasts)
        start = epoch * self._order.examples
        begins = np.where(needed, firsts + start, NEVER)
        ends = np.where(needed, lasts + start, NEVER) if self._is_chunked else begins
        return begins, ends

    def _find_read(self, epoch: int, queues: Array, firsts: Array, lasts: Array) -> Array:
        """Return for each file whether the machine's workers read its stream while the stream reads it.

        The arguments are the spans of the files in the epoch.
        """
        order = self._order
        places = np.unique(np.linspace(0, order.examples - 1, _SAMPLES).astype(np.int64))
        # reads[k, q] is the number of the samples before sample k at which a worker reads stream q.
        reads = np.zeros((len(places) + 1, order.queues), np.int64)
        for number, place in enumerate(places.tolist(), start=1):
            for dealer in self._dealers:
                assert isinstance(dealer, StreamDealer)
                reads[number, list(dealer.find_own_streams(Position(epoch, place)))] = 1
        reads = np.cumsum(reads, axis=0)
        # the samples from the last one before the file to the first one after it
        start = np.maximum(np.searchsorted(places, firsts, side="right") - 1, 0)
        stop = np.minimum(np.searchsorted(places, lasts, side="left") + 1, len(places))
        found: Array = reads[stop, queues] > reads[start, queues]
        return found


class MixtureForecast:
    """Forecast for a mixture, of whose sources every machine needs all files.

    The place of a need is exact in the order of its source. In the order of the mixture, it is an estimate.
    order: the order of the mixture.
    margins: how long before and after its place a file is needed.
    """

    def __init__(self, order: MixedOrder, margins: Margins) -> None:
        self._order = order
        self._starts = [start for start, _ in order.sources]
        # Over many examples, each source provides its share of them.
        self._shares = order.count_turns(_MANY) / _MANY
        self._parts = [
            OrderForecast(one, self._share_margins(margins, one, share))
            for (_, one), share in zip(order.sources, self._shares, strict=True)
        ]

    @staticmethod
    def _share_margins(margins: Margins, order: Order, share: float) -> Margins:
        """Return the margins in examples of a source.

        The files of the next examples of each source stay open, as many examples as it has queues.
        """
        return Margins(math.ceil(margins.before * share) + order.queues, math.ceil(margins.after * share))

    def find_next(self, place: int) -> Array:
        turns = self._order.count_turns(place).tolist()
        found = [part.find_next(turn) for part, turn in zip(self._parts, turns, strict=True)]
        # For example, a source with a third of the examples needs a file 10 of its own examples from now,
        # which is 30 examples of the mixture from now.
        estimates = [
            np.where(needs == NEVER, NEVER, place + ((needs - turn) / share).astype(np.int64))
            for needs, turn, share in zip(found, turns, self._shares, strict=True)
        ]
        return np.concatenate(estimates)

    def is_near(self, place: int, needs: Array) -> Array:
        turns = self._order.count_turns(place).tolist()
        return np.concatenate(
            [part.is_near(turn, part.find_next(turn)) for part, turn in zip(self._parts, turns, strict=True)]
        )

    def find_needed(self, epoch: int) -> Array:
        return np.concatenate([part.find_needed(epoch) for part in self._parts])

    def find_at_once(self, sizes: Array, epoch: int) -> AtOnce:
        of_sources = np.split(sizes, self._starts[1:])
        found = [part.find_at_once(own, epoch) for part, own in zip(self._parts, of_sources, strict=True)]
        return AtOnce(sum(one.files for one in found), sum(one.bytes for one in found))
