"""The order in which the sources of a mixture take turns. It depends only on their integer weights.

Let W be the sum of the weights. In each period of W examples, a source with weight w has w turns. Their order
follows one of two rules.

**Midpoints.** Turn j of a source (from 0) is due at (2 j + 1) / (2 w) of the period, and turns are sorted by
this time. Among turns due at the same time, the source with the larger weight goes first, then the source
that was named first. This is Webster's method of apportionment (Balinski and Young, Fair Representation,
1982). Whether a turn of A comes before a turn of B does not depend on other sources. Adding a source
therefore keeps the order of the others among themselves.

With up to three sources, the number of turns of a source before any place n differs from its share n w / W by
less than one. From four sources on, no rule can guarantee both this limit and an order that does not depend
on other sources. The limit then takes precedence: if midpoints exceed it, the rule of deadlines is used.

**Deadlines.** Turn j may come from place floor(j W / w) on, and must come before place ceil((j + 1) W / w).
Among the turns that may come, the turn with the earliest deadline is next. If several turns have this
deadline, the turn with the earliest midpoint is next. This rule always meets all deadlines (earliest deadline
first is optimal for unit tasks), so the shares hold for any number of sources.

This module imports NumPy.
"""

from collections.abc import Sequence
from functools import lru_cache
from heapq import heappop, heappush

import numpy as np

from bertdata.examples.columns import Array


@lru_cache(maxsize=4)
def find_turns(weights: tuple[int, ...]) -> "Turns":
    """Return the order in which datasets of these weights take turns in a mixture.

    The orders for the last few weights are cached.
    """
    return Turns(weights)


class Turns:
    """The order of turns in a mixture.

    It tells which source supplies each place, and with which of its turns.

    weights: positive integers, one for each source.
    """

    def __init__(self, weights: Sequence[int]) -> None:
        self.period = sum(weights)
        self._weights = np.array(weights, np.int64)
        order = order_by_midpoints(weights)
        if not has_fair_shares(order, weights):
            order = order_by_deadlines(weights)
        self._sources = order
        self._numbers = _number_turns(order, len(weights))

    def find_sources(self, places: Array) -> tuple[Array, Array]:
        """Return the source that supplies each place.

        Also returns the number of the turn, counted among all turns of that source.
        """
        periods, rest = np.divmod(places, self.period)
        sources = self._sources[rest]
        return sources, periods * self._weights[sources] + self._numbers[rest]

    def count_turns(self, place: int) -> Array:
        """Return the number of turns that each source has before a place."""
        periods, rest = divmod(place, self.period)
        now = np.bincount(self._sources[:rest], minlength=len(self._weights))
        found: Array = periods * self._weights + now
        return found

    def find_place(self, source: int, number: int) -> int:
        """Return the place in the mixture that turn ``number`` of a source supplies."""
        periods, rest = divmod(number, int(self._weights[source]))
        return periods * self.period + int(np.flatnonzero(self._sources == source)[rest])


def order_by_midpoints(weights: Sequence[int]) -> Array:
    """Return the sources in a period of the mixture, ordered by the midpoints of their turns.

    For example, the weights (2, 1) give the midpoints 1/4 and 3/4 for source 0, and 1/2 for source 1. The
    order is [0, 1, 0]. Comparing midpoints as 64-bit floats is exact, because weights are at most a million
    and two different fractions differ by at least 1 / (4 w w').
    """
    sources = np.repeat(np.arange(len(weights)), weights)
    each = np.array(weights, np.int64)[sources]
    due = (2 * _number_turns(sources, len(weights)) + 1) / (2 * each)
    order: Array = sources[np.lexsort((sources, -each, due))]
    return order.astype(np.int32)


def order_by_deadlines(weights: Sequence[int]) -> Array:
    """Return the sources in a period of the mixture, ordered by the deadlines of their turns.

    At each place, only turns whose earliest place has been reached take part.
    """
    period = sum(weights)
    # coming[place] lists the turns whose earliest place this is. ready is a heap of the turns that may come
    # now, ordered by deadline. Only the next turn of each source is in one of them. When this turn is taken,
    # the source's following turn is added to coming.
    coming: list[list[_Turn]] = [[] for _ in range(period)]
    for source, weight in enumerate(weights):
        coming[0].append(_make_turn(source, 0, weight, period))
    ready: list[_Turn] = []
    order = np.empty(period, np.int32)
    for place in range(period):
        for turn in coming[place]:
            heappush(ready, turn)
        *_, source, number = heappop(ready)
        order[place] = source
        if (number := number + 1) < (weight := weights[source]):
            first = max(number * period // weight, place + 1)
            coming[first].append(_make_turn(source, number, weight, period))
    return order


_Turn = tuple[int, float, int, int, int]
"""Deadline, midpoint, negative weight, source and number of a turn. Sorting these tuples gives the order of
turns.
"""


def _make_turn(source: int, number: int, weight: int, period: int) -> _Turn:
    """Return the sort key of a turn of a source, in a period of the mixture."""
    deadline = -(-(number + 1) * period // weight)
    return deadline, (2 * number + 1) / (2 * weight), -weight, source, number


def has_fair_shares(order: Array, weights: Sequence[int]) -> bool:
    """Return True if, before any place, the number of turns of each source differs from its share by less
    than one.
    """
    period = len(order)
    for source, weight in enumerate(weights):
        places = np.flatnonzero(order == source)
        due = np.arange(weight) * period
        if (places * weight - due >= period).any() or (due >= (places + 1) * weight).any():
            return False
    return True


def _number_turns(order: Array, sources: int) -> Array:
    """Return for each place the number of the turn among the turns of its source.

    For example, the sources [0, 1, 0] give the numbers [0, 0, 1].
    """
    numbers = np.empty(len(order), np.int64)
    for source in range(sources):
        places = np.flatnonzero(order == source)
        numbers[places] = np.arange(len(places))
    return numbers
