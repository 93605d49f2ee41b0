"""Edges of length bins: the ones that leave the least padding, by dynamic programming.

The examples of a window, sorted by length, make units. A bin is a run of units, which mix, so that each of
their rows is padded to about the longest of the bin. Edges between units of one padded width change
nothing and are left out: of 64 bins at 512 there are as many as widths.
"""

import numpy as np

from bertdata.examples.columns import Array
from trainer.extensions.loading.padded_rows import WIDTH_STEP

_NOT_POSSIBLE = 1 << 62


def bin_edges(longest: Array, bins: int) -> Array:
    """The units where bins begin, and their number: of all cuts into at most ``bins`` the least padded one.

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
    found: Array = places[edges[::-1]]
    return found


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
