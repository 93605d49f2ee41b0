"""Length bins: an order in which the micro-batches of an update have sequences of nearly equal length.

On devices that use padded rows, every row of a micro-batch is as long as its longest sequence, and padding
costs as much time as tokens. Drawing each micro-batch from a bin of similar lengths saves most of the
padding.

A "unit" is the examples of a group of micro-batches that are dealt together (``trainer.data.order``), often
the whole update. A "window" is a number of whole updates of an epoch, with at least 8,192 examples and two
units per bin if the epoch has that many. Its examples are sorted by length (the earlier of equal ones first)
and cut into bins of whole units, at the places with the least padding. Within a bin, examples are shuffled
and form its units. Then the units of all bins are shuffled, so that each next unit comes from a bin with a
probability proportional to the units it has left. An update that begins in one epoch and ends in the next is
a window by itself, and its order is not changed.

The order depends on the order of the examples, the number of bins, and the number and size of an update's
micro-batches, but not on the number of workers. A position in the data, from which a run resumes, consists of
the window's first example and the number of the window's examples that are already used.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from bertdata.errors import DatasetError, SettingsError
from bertdata.examples.columns import Array
from trainer.data.examples import Rows
from trainer.data.order import Dealer, FileRows, Order, OwnRows, Position, draw_numbers
from trainer.data.padded_rows import WIDTH_STEP
from trainer.data.windows import Window, find_lengths

LEAST_WINDOW = 8192  # examples
_UNITS_OF_A_BIN = 2  # units per bin, so that few units mix examples of two different padded widths
_KEPT_WINDOWS = 4
_NOT_POSSIBLE = 1 << 62


def sort_into_bins(lengths: Array, unit_rows: int, bins: int, *key: object) -> Array:
    """Return the examples of a window, which has whole units, in the order in which the bins yield them.

    lengths: tokens of each example. unit_rows: examples of a unit. key: seed of the shuffles.
    """
    units = len(lengths) // unit_rows
    # Example with lengths [9, 2, 8, 3], units of 2 examples, 2 bins: by_length [1, 3, 2, 0], bins {1, 3} and
    # {2, 0}. Each bin is shuffled, e.g. [3, 1] and [2, 0], then the units: [2, 0, 3, 1].
    drawn = draw_numbers(len(lengths) + units, *key)
    by_length = np.argsort(lengths, kind="stable")
    longest = lengths[by_length].reshape(units, unit_rows)[:, -1]
    edges = choose_bin_edges(longest, bins) * unit_rows
    in_bins = np.concatenate(
        [own[np.argsort(drawn[own], kind="stable")] for own in np.split(by_length, edges[1:-1])]
    )
    turns = np.argsort(drawn[len(lengths) :], kind="stable")
    return in_bins.reshape(units, unit_rows)[turns].ravel()


def choose_bin_edges(longest: Array, bins: int) -> Array:
    """Choose the cut into bins with the least padding. Return the units at which the bins begin, then the
    number of units.

    longest: tokens of each unit's longest example, ascending. Rounded up to a multiple of WIDTH_STEP, they
    are the units' padded widths.
    bins: most bins. Bins with the same padded width are joined, as a cut between them would save nothing.
    Among cuts with equal padding, the one with the fewest bins wins, then the one with the longest last bins.
    """
    widths = -(-longest.astype(np.int64) // WIDTH_STEP) * WIDTH_STEP
    # Only places where the width changes can be useful cuts: widths [8, 8, 16, 24, 24] -> places [0, 2, 3, 5]
    stops = np.flatnonzero(np.diff(widths, append=widths[-1:] + 1)) + 1
    places = np.concatenate([[0], stops])
    if len(stops) <= bins:
        return places
    padded, starts = _find_least_padding(places, widths[stops - 1], bins)
    # Walk back from the end: starts[b, end] is where the last of b bins begins if they end at ``end``.
    edges = [len(stops)]
    for number in range(int(padded[:, -1].argmin()), 0, -1):
        edges.append(int(starts[number, edges[-1]]))
    return places[edges[::-1]]


def _find_least_padding(places: Array, widths: Array, bins: int) -> tuple[Array, Array]:
    """Find the best cuts by dynamic programming. Return (padded, starts), each of shape (bins + 1, places).

    padded[b, i]: least total width of all units before place i if they are cut into b bins.
    starts[b, i]: where the last of these bins begins.
    """
    padded = np.full((bins + 1, len(places)), _NOT_POSSIBLE)
    starts = np.zeros((bins + 1, len(places)), np.int64)
    padded[0, 0] = 0
    # The last bin begins at some earlier place and pads all its units to the width before ``stop``. The units
    # before it have the best cut into one bin less, which is already known.
    for stop in range(1, len(places)):
        last_bin = widths[stop - 1] * (places[stop] - places[:stop])
        sums = np.minimum(padded[:-1, :stop] + last_bin, _NOT_POSSIBLE)
        starts[1:, stop], padded[1:, stop] = sums.argmin(axis=1), sums.min(axis=1)
    return padded, starts


def find_unit_places(index: Array, dealer: Dealer) -> Array:
    """Convert places in the order of examples to places in an order where the units of each update are
    adjacent.

    The two differ because example i of an update goes to micro-batch i modulo the number of micro-batches, so
    that the examples of a unit are spread over the update. index: places to convert.
    """
    group, update_rows = dealer.group, dealer.update_rows
    update, beside = np.divmod(index, update_rows)
    turn, micro_batch = np.divmod(beside, dealer.micro_batches)
    unit, own = np.divmod(micro_batch, group)
    places: Array = update * update_rows + unit * group * dealer.batch_size + turn * group + own
    return places


class BinnedOrder(Order):
    """Order in which the examples of each window are sorted into length bins. The module's docstring explains
    windows, units and bins.
    """

    def __init__(self, dealer: Dealer, bins: int) -> None:
        self._dealer, self._order, self._bins = dealer, dealer.order, bins
        self.examples = dealer.order.examples
        self._update_rows, self._unit_rows = dealer.update_rows, dealer.group * dealer.batch_size
        window = max(LEAST_WINDOW, _UNITS_OF_A_BIN * bins * self._unit_rows)
        self._most_updates = -(-window // self._update_rows)
        self._window = lru_cache(maxsize=_KEPT_WINDOWS)(self._sort)

    def size(self, start: int) -> int:
        """Return the number of examples of the window that begins at example ``start`` of an epoch."""
        updates = (self._order.examples - start) // self._update_rows
        windows = max(updates // self._most_updates, 1)
        return max(-(-updates // windows), 1) * self._update_rows

    def advance(self, position: Position, examples: int) -> Position:
        """Return the position that is ``examples`` examples after this position."""
        rest = position.rows + examples
        start = Position(position.epoch, position.examples)
        while rest >= (size := self.size(start.examples)):
            rest -= size
            start = self._order.advance(start, size)
        return start._replace(rows=rest)

    def find(self, position: Position, offsets: Array) -> Iterator[FileRows]:
        """Yield the examples at the offsets from the position, window by window and file by file."""
        wanted, before, last = position.rows + offsets, 0, position.rows + int(offsets.max())
        start = Position(position.epoch, position.examples)
        while before <= last:
            size = self.size(start.examples)
            targets = np.flatnonzero((before <= wanted) & (wanted < before + size))
            if len(targets):
                window = self._window(start.epoch, start.examples)
                yield from window.find(find_unit_places(wanted[targets] - before, self._dealer), targets)
            before += size
            start = self._order.advance(start, size)

    def _sort(self, epoch: int, start: int) -> Window:
        """Return the window that begins at example ``start`` of an epoch."""
        size = self.size(start)
        parts = list(self._order.find(Position(epoch, start), np.arange(size)))
        if start + size > self._order.examples:
            return Window(parts, np.arange(size))
        lengths = find_lengths(parts, size, self._dealer.lengths)
        key = (self._dealer.seed, epoch, "length bins", start)
        return Window(parts, sort_into_bins(lengths, self._unit_rows, self._bins, *key))


@dataclass(frozen=True)
class RowsFromBins(Rows):
    """Stored examples in the order of length bins.

    Raises SettingsError for a dataset without lengths, and for packed rows.
    """

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
