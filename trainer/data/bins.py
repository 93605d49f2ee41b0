"""Length bins: an order of the examples in which neighbouring micro-batches have near equal lengths.

The examples of a group of micro-batches (``trainer.data.order``) make a unit: of small updates the whole
update. A window is some whole updates of an epoch: at least 8,192 examples, and two units a bin, where the
epoch has as many. Its examples are sorted by length (of equal ones the earlier first) and cut into bins of
whole units, where that leaves the least padding, as each of a bin's rows is padded to about the longest of
the bin; within a bin they come in an order by key, which makes its units. The units of all bins come in an
order by key too, so that one is drawn from a bin as likely as it has units left. The update that begins in
one epoch and ends in the next is a window of its own, and keeps its order.

So the order is a function of the order of the examples, the number of bins, and the micro-batches of an
update and their size, whatever the workers. A position is the window's first example and the examples of it
that are consumed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from bertdata.errors import DatasetError, SettingsError
from bertdata.examples.columns import Array
from trainer.data.examples import Rows
from trainer.data.order import Dealer, FileRows, Order, OwnRows, Position, numbers
from trainer.data.padded_rows import WIDTH_STEP
from trainer.data.windows import Window, lengths_of

LEAST_WINDOW = 8192  # examples
_UNITS_OF_A_BIN = 2  # so that few units have examples of two padded widths
_KEPT_WINDOWS = 4
_NOT_POSSIBLE = 1 << 62


def sort_into_bins(lengths: Array, unit_rows: int, bins: int, *key: object) -> Array:
    """The examples of a window, whole units of them, in the order in which bins give them.

    key: of the random numbers.
    """
    units = len(lengths) // unit_rows
    drawn = numbers(len(lengths) + units, *key)
    by_length = np.argsort(lengths, kind="stable")
    longest = lengths[by_length].reshape(units, unit_rows)[:, -1]
    edges = bin_edges(longest, bins) * unit_rows
    in_bins = np.concatenate(
        [own[np.argsort(drawn[own], kind="stable")] for own in np.split(by_length, edges[1:-1])]
    )
    turns = np.argsort(drawn[len(lengths) :], kind="stable")
    return in_bins.reshape(units, unit_rows)[turns].ravel()


def bin_edges(longest: Array, bins: int) -> Array:
    """The units where bins begin, and their number: of all cuts into at most ``bins`` the least padded one.

    Edges between units of one padded width change nothing and are left out: of 64 bins at 512 there are as
    many as widths. By dynamic programming.
    longest: tokens of the longest example of each unit, ascending; widths are these, rounded up to
    WIDTH_STEP. Of cuts padded alike the one of fewest bins, then the one whose last bins are longest.
    """
    widths = -(-longest.astype(np.int64) // WIDTH_STEP) * WIDTH_STEP
    stops = np.flatnonzero(np.diff(widths, append=widths[-1:] + 1)) + 1
    places = np.concatenate([[0], stops])
    if len(stops) <= bins:
        return places
    padded, starts = _least_padded(places, widths[stops - 1], bins)
    edges = [len(stops)]
    for number in range(int(padded[:, -1].argmin()), 0, -1):
        edges.append(int(starts[number, edges[-1]]))
    return places[edges[::-1]]


def _least_padded(places: Array, widths: Array, bins: int) -> tuple[Array, Array]:
    """Widths of all units before each place, in so many bins and added up, and where the last bin begins.

    [bins + 1, places] each; the sum is the least possible.
    """
    padded = np.full((bins + 1, len(places)), _NOT_POSSIBLE)
    starts = np.zeros((bins + 1, len(places)), np.int64)
    padded[0, 0] = 0
    for stop in range(1, len(places)):
        last_bin = widths[stop - 1] * (places[stop] - places[:stop])
        sums = np.minimum(padded[:-1, :stop] + last_bin, _NOT_POSSIBLE)
        starts[1:, stop], padded[1:, stop] = sums.argmin(axis=1), sums.min(axis=1)
    return padded, starts


def in_units(index: Array, dealer: Dealer) -> Array:
    """The place of each example of some updates when the units of an update lie one behind the other.

    Example i of an update goes to micro-batch i modulo their number.
    """
    group, update_rows = dealer.group, dealer.update_rows
    update, beside = np.divmod(index, update_rows)
    turn, micro_batch = np.divmod(beside, dealer.micro_batches)
    unit, own = np.divmod(micro_batch, group)
    places: Array = update * update_rows + unit * group * dealer.batch_size + turn * group + own
    return places


class BinnedOrder(Order):
    """The order of a dealer's examples with the units of each window drawn from bins."""

    def __init__(self, dealer: Dealer, bins: int) -> None:
        self._dealer, self._order, self._bins = dealer, dealer.order, bins
        self.examples = dealer.order.examples
        self._update_rows, self._unit_rows = dealer.update_rows, dealer.group * dealer.batch_size
        window = max(LEAST_WINDOW, _UNITS_OF_A_BIN * bins * self._unit_rows)
        self._most_updates = -(-window // self._update_rows)
        self._window = lru_cache(maxsize=_KEPT_WINDOWS)(self._sort)

    def size(self, start: int) -> int:
        """The examples of the window that begins at that example of an epoch."""
        updates = (self._order.examples - start) // self._update_rows
        windows = max(updates // self._most_updates, 1)
        return max(-(-updates // windows), 1) * self._update_rows

    def advance(self, position: Position, examples: int) -> Position:
        """The position after that many more examples."""
        rest = position.rows + examples
        start = Position(position.epoch, position.examples)
        while rest >= (size := self.size(start.examples)):
            rest -= size
            start = self._order.advance(start, size)
        return start._replace(rows=rest)

    def find(self, position: Position, offsets: Array) -> Iterator[FileRows]:
        """The examples at the offsets from the position, window by window and file by file."""
        wanted, before, last = position.rows + offsets, 0, position.rows + int(offsets.max())
        start = Position(position.epoch, position.examples)
        while before <= last:
            size = self.size(start.examples)
            targets = np.flatnonzero((before <= wanted) & (wanted < before + size))
            if len(targets):
                window = self._window(start.epoch, start.examples)
                yield from window.find(in_units(wanted[targets] - before, self._dealer), targets)
            before += size
            start = self._order.advance(start, size)

    def _sort(self, epoch: int, start: int) -> Window:
        """The window that begins at an example of an epoch."""
        size = self.size(start)
        parts = list(self._order.find(Position(epoch, start), np.arange(size)))
        if start + size > self._order.examples:
            return Window(parts, np.arange(size))
        lengths = lengths_of(parts, size, self._dealer.lengths)
        key = (self._dealer.seed, epoch, "length bins", start)
        return Window(parts, sort_into_bins(lengths, self._unit_rows, self._bins, *key))


@dataclass(frozen=True)
class RowsFromBins(Rows):
    """Stored examples in the order of length bins. SettingsError without lengths, and for packed rows."""

    bins: int = 2

    def __post_init__(self) -> None:
        data = self.data
        if data.layout.packing is not None:
            layout = f"layout {data.layout.packing}"
            raise SettingsError(f"{data.name}: its rows are packed ({layout}); bins need single examples")
        if not data.has_lengths:
            raise SettingsError(f"{data.name}: bins need the lengths of its examples, and it has none")

    def describe(self, update: str) -> str:
        return f"from {self.bins} length bins of least padding, updates of {update}"

    def find(self, dealer: Dealer, start: Position) -> Iterator[OwnRows]:
        order = BinnedOrder(dealer, self.bins)
        if start.rows % dealer.update_rows or start.rows >= order.size(start.examples):
            raise DatasetError(f"{self.data.name}: examples from length bins have no position {tuple(start)}")
        return replace(dealer, order=order).find(start)
