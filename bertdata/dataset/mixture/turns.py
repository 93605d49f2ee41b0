"""The turns of a mixture's sources: a function of their whole weights and the place in the mixture.

In each period of W examples, W the sum of the weights, source s with the weight w has w turns. By
**midpoints**, turn j of a source (from 0) is due at (2 j + 1) / 2 w of the period, and the turns come as they
are due: of those due together, that of the largest weight first, then that of the source named first. This
is Webster's method of apportionment (Balinski and Young, Fair Representation, 1982). Whether a turn of A
comes before one of B does not depend on other sources, so a source may be added without a change of the
order of the others among themselves.

Up to three sources each has, before every place n, less than one turn more or less than n w / W. From four
sources on no rule has both this and that independence. There the shares go first: where midpoints would
miss them, the turns come **by deadlines**. Turn j may come from place floor(j W / w) on and must come before
place ceil((j + 1) W / w); of those that may, the one with the earliest deadline goes next, of equals the one
that is first by midpoints. It always meets all deadlines (earliest deadline first, of unit tasks that can be
scheduled), so the shares hold for any number of sources.

Needs NumPy when it is imported.
"""

from collections.abc import Sequence
from functools import lru_cache
from heapq import heappop, heappush

import numpy as np

from bertdata.examples.columns import Array


@lru_cache(maxsize=4)
def turns_of(weights: tuple[int, ...]) -> "Turns":
    """The turns of sources with these weights, made once."""
    return Turns(weights)


class Turns:
    """The source of each place in a mixture, from 0 without end, and the number of its turn.

    weights: whole numbers, one a source.
    """

    def __init__(self, weights: Sequence[int]) -> None:
        self.period = sum(weights)
        self._weights = np.array(weights, np.int64)
        order = by_midpoints(weights)
        if not holds_shares(order, weights):
            order = by_deadlines(weights)
        self._sources = order
        self._numbers = _turn_numbers(order, len(weights))

    def find(self, places: Array) -> tuple[Array, Array]:
        """The source of each place, and the number of the turn among all of that source."""
        periods, rest = np.divmod(places, self.period)
        sources = self._sources[rest]
        return sources, periods * self._weights[sources] + self._numbers[rest]

    def counts(self, place: int) -> Array:
        """The turns of each source before the place."""
        periods, rest = divmod(place, self.period)
        now = np.bincount(self._sources[:rest], minlength=len(self._weights))
        found: Array = periods * self._weights + now
        return found

    def place(self, source: int, number: int) -> int:
        """The place of a source's turn."""
        periods, rest = divmod(number, int(self._weights[source]))
        return periods * self.period + int(np.flatnonzero(self._sources == source)[rest])


def by_midpoints(weights: Sequence[int]) -> Array:
    """The sources of one period in the order of their midpoints.

    Two quotients of 64-bit floats are equal where the fractions are, and in their order where they are not:
    these differ by 1 / 4 w w' at least, and weights are at most a million.
    """
    sources = np.repeat(np.arange(len(weights)), weights)
    each = np.array(weights, np.int64)[sources]
    due = (2 * _turn_numbers(sources, len(weights)) + 1) / (2 * each)
    order: Array = sources[np.lexsort((sources, -each, due))]
    return order.astype(np.int32)


def by_deadlines(weights: Sequence[int]) -> Array:
    """The sources of one period, of those that may come the one with the earliest deadline first."""
    period = sum(weights)
    coming: list[list[_Turn]] = [[] for _ in range(period)]
    for source, weight in enumerate(weights):
        coming[0].append(_turn(source, 0, weight, period))
    ready: list[_Turn] = []
    order = np.empty(period, np.int32)
    for place in range(period):
        for turn in coming[place]:
            heappush(ready, turn)
        *_, source, number = heappop(ready)
        order[place] = source
        if (number := number + 1) < (weight := weights[source]):
            first = max(number * period // weight, place + 1)
            coming[first].append(_turn(source, number, weight, period))
    return order


_Turn = tuple[int, float, int, int, int]
"""Deadline, midpoint, weight below zero, source, number."""


def _turn(source: int, number: int, weight: int, period: int) -> _Turn:
    deadline = -(-(number + 1) * period // weight)
    return deadline, (2 * number + 1) / (2 * weight), -weight, source, number


def holds_shares(order: Array, weights: Sequence[int]) -> bool:
    """True if each source has before every place less than one turn more or less than its share."""
    period = len(order)
    for source, weight in enumerate(weights):
        places = np.flatnonzero(order == source)
        due = np.arange(weight) * period
        if (places * weight - due >= period).any() or (due >= (places + 1) * weight).any():
            return False
    return True


def _turn_numbers(order: Array, sources: int) -> Array:
    """The number of each turn among those of its source."""
    numbers = np.empty(len(order), np.int64)
    for source in range(sources):
        places = np.flatnonzero(order == source)
        numbers[places] = np.arange(len(places))
    return numbers
