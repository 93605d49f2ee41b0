"""Length bins: an order of the examples in which the examples of a micro-batch have similar lengths.

On devices that use padded rows, every row of a micro-batch is as long as the longest sequence in it. Padding
costs as much time as tokens. Drawing each micro-batch from a bin of similar lengths saves most of the
padding.

Within an update, neighbouring micro-batches form groups, which share their examples (``trainer.data.order``).
The examples of a group are called a unit. Often the whole update is one unit. A "window" is a number of
consecutive updates in an epoch. It has at least 8,192 examples and two units for each bin, if the epoch has
as many.

The examples of a window are sorted by length. Examples of equal length keep their order. The sorted examples
are cut into bins, each with a whole number of units, at the places where the padding is least. The examples
of each bin are shuffled and divided into units. Then the units of all bins are shuffled. An update that
begins in one epoch and ends in the next is a window by itself, and its order is not changed.

The result depends on the original order of the examples, the number of bins, and the number and size of an
update's micro-batches. It does not depend on the number of workers. A run can resume from a position in the
data. It consists of the first example of a window and the number of the window's examples that are already
used.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from bertdata.errors import DatasetError, SettingsError
from bertdata.examples.columns import Array
from trainer.data.examples import Rows
from trainer.data.order import Dealer, FileRows, Order, Position, WorkerRows, draw_numbers
from trainer.data.padded_rows import WIDTH_STEP
from trainer.data.windows import Window, find_lengths

LEAST_WINDOW = 8192  # examples
# A window has at least this many units for each bin, so that few units have examples of two different padded
# widths.
_UNITS_OF_A_BIN = 2
_KEPT_WINDOWS = 4
_NOT_POSSIBLE = 1 << 62


def sort_into_bins(lengths: Array, unit_rows: int, bins: int, *key: object) -> Array:
    """Return the indices of a window's examples in the order of length bins. The module's docstring explains
    it.

    lengths: number of tokens of each example. The window has a whole number of units.
    unit_rows: number of examples in a unit.
    bins: largest number of bins.
    key: seed of the shuffles.
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
    """Choose where bins begin, so that there is least padding.

    Return the number of the unit at which each bin begins, and at the end the number of units.

    If several choices give the same padding, the one with the fewest bins is taken, then the one with the
    longest last bins. Bins with the same padded width are joined, because dividing them would save nothing.

    longest: for each unit the number of tokens of its longest example, in ascending order. Rounded up to a
    multiple of WIDTH_STEP, this is the unit's padded width.
    bins: largest number of bins.
    """
    widths = -(-longest.astype(np.int64) // WIDTH_STEP) * WIDTH_STEP
    # A bin can only begin usefully where the width changes: widths [8, 8, 16, 24, 24] -> places [0, 2, 3, 5]
    stops = np.flatnonzero(np.diff(widths, append=widths[-1:] + 1)) + 1
    places = np.concatenate([[0], stops])
    if len(stops) <= bins:
        return places
    padded, starts = _find_least_padding(places, widths[stops - 1], bins)
    # Go back from the end: starts[b, end] is where the last of b bins begins if this bin ends at ``end``.
    edges = [len(stops)]
    for number in range(int(padded[:, -1].argmin()), 0, -1):
        edges.append(int(starts[number, edges[-1]]))
    return places[edges[::-1]]


def _find_least_padding(places: Array, widths: Array, bins: int) -> tuple[Array, Array]:
    """Find the bins with the least padding by dynamic programming. Return two arrays of shape (bins + 1,
    places).

    padded[b, i]: least total width, with padding, of all units before place i if they are divided into b
    bins.
    starts[b, i]: index of the place where the last of these bins begins.

    places: the units at which a bin may begin, then the number of units.
    widths: padded width of the units between each place and the next.
    """
    padded = np.full((bins + 1, len(places)), _NOT_POSSIBLE)
    starts = np.zeros((bins + 1, len(places)), np.int64)
    padded[0, 0] = 0
    # The last bin may begin at any earlier place. All its units are padded to the width of its last unit. For
    # the units before the last bin, the best division into one bin less is already known.
    for stop in range(1, len(places)):
        last_bin = widths[stop - 1] * (places[stop] - places[:stop])
        sums = np.minimum(padded[:-1, :stop] + last_bin, _NOT_POSSIBLE)
        starts[1:, stop], padded[1:, stop] = sums.argmin(axis=1), sums.min(axis=1)
    return padded, starts


def convert_to_unit_places(index: Array, dealer: Dealer) -> Array:
    """Convert places among the examples of updates to places in an order where the examples of each unit are
    adjacent.

    The two differ because example i of an update belongs to micro-batch i modulo the number of micro-batches.
    So the examples of a unit are spread over the update.

    index: places to convert.
    """
    group, update_rows = dealer.group, dealer.update_rows
    update, beside = np.divmod(index, update_rows)
    turn, micro_batch = np.divmod(beside, dealer.micro_batches)
    unit, own = np.divmod(micro_batch, group)
    places: Array = update * update_rows + unit * group * dealer.batch_size + turn * group + own
    return places


class BinnedOrder(Order):
    """The order of examples in which a micro-batch holds examples of similar length, from one bin."""

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
        """Return the position that lies ``examples`` examples after another position."""
        rest = position.rows + examples
        start = Position(position.epoch, position.examples)
        while rest >= (size := self.size(start.examples)):
            rest -= size
            start = self._order.advance(start, size)
        return start._replace(rows=rest)

    def find(self, position: Position, offsets: Array) -> Iterator[FileRows]:
        """Yield the examples at some distances after a position, window by window and file by file.

        position: position in the data.
        offsets: distances of the examples from the position, in examples.
        """
        wanted, before, last = position.rows + offsets, 0, position.rows + int(offsets.max())
        start = Position(position.epoch, position.examples)
        while before <= last:
            size = self.size(start.examples)
            targets = np.flatnonzero((before <= wanted) & (wanted < before + size))
            if len(targets):
                window = self._window(start.epoch, start.examples)
                yield from window.find(
                    convert_to_unit_places(wanted[targets] - before, self._dealer), targets
                )
            before += size
            start = self._order.advance(start, size)

    def _sort(self, epoch: int, start: int) -> Window:
        """Sort the window that begins at example ``start`` of an epoch into length bins."""
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

    Raises SettingsError for a dataset without files of lengths, and for a dataset with packed rows.
    """

    bins: int = 2
    is_shareable = False

    def __post_init__(self) -> None:
        data = self.data
        if data.layout.packing is not None:
            layout = f"layout {data.layout.packing}"
            raise SettingsError(f"{data.name}: its rows are packed ({layout}); bins need single examples")
        if not data.has_lengths:
            raise SettingsError(f"{data.name}: bins need the lengths of its examples, and it has none")

    def describe(self, update: str) -> str:
        """Return a text that describes the order of the rows, for checkpoints."""
        return f"from {self.bins} length bins of least padding, updates of {update}"

    def find_window(self, dealer: Dealer) -> int:
        """Return the number of consecutive examples that are sorted into bins together."""
        return BinnedOrder(dealer, self.bins).size(0)

    def find(self, dealer: Dealer, start: Position) -> Iterator[WorkerRows]:
        """Yield the rows of a worker in the order of length bins."""
        order = BinnedOrder(dealer, self.bins)
        if start.rows % dealer.update_rows or start.rows >= order.size(start.examples):
            raise DatasetError(f"{self.data.name}: examples from length bins have no position {tuple(start)}")
        return replace(dealer, order=order).find(start)
