"""Search for the fastest division of layers into stages.

The search is exact: no other division is faster, whatever the stages cost.

With m micro-batches, a division takes ``sum(t) + (m - 1) * max(t) + max(e)``. Here t is the time for which a
micro-batch keeps a stage busy, and e is the stage's time after its last micro-batch (all-reduce and
optimiser).

A sum is easy to minimise by dynamic programming over (stages left, first layer), but the two maxima are not
sums. So the search sets upper limits for t and e, minimises the sum of t under these limits, and lowers the
limits from solution to solution until no lower limit can be faster. Times are whole numbers, so that all
processes find the same division.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainer.splitting.plan.stages import Whole

FAR = 2**61
"""Value for stages that are not allowed.

It is larger than every time, and its double still fits into 64 bits.
"""


class Choice(NamedTuple):
    """A stage of layers ``first`` to ``last - 1``. Its kind, a number from 0 to 3, says whether it recomputes
    activations and whether it is sharded.
    """

    kind: int
    first: int
    last: int


class LayerDivision(NamedTuple):
    """A division of the layers into stages, in units of time.

    total: sum of the times for which a micro-batch keeps each stage busy. longest: the longest of these
    times. end: the longest time that a stage needs after its last micro-batch.
    """

    choices: tuple[Choice, ...]
    total: int
    longest: int
    end: int

    def passes(self, micro_batches: int) -> int:
        """Return the time of all forward and backward passes of an update."""
        return self.total + (micro_batches - 1) * self.longest


class Search:
    """Search for a fixed number of stages and of micro-batches.

    busy, end: t and e (see the top of this module) of every possible stage, whole numbers of shape (kinds, L
    + 1, L + 1). Any sum of them must stay below 2^60 / (L^2 + 1).
    fits: for each stage, from the last to the first, which entries are allowed.
    solutions: number of dynamic programmes solved so far.
    """

    def __init__(
        self, busy: Whole, end: Whole, fits: Sequence[NDArray[np.bool_]], micro_batches: int
    ) -> None:
        self._busy, self._end, self._fits, self._micro_batches = busy, end, fits, micro_batches
        layers = busy.shape[-1] - 1
        # A key holds two numbers: the stage's time, and below it the square of its length in layers. So the
        # least sum of keys is the least sum of times, and among equal sums the most even division: 2 + 2
        # layers (4 + 4 = 8) before 1 + 3 (1 + 9 = 10). Squares sum to at most L^2, so they never carry into
        # the times.
        places = np.arange(layers + 1)
        self._scale = layers**2 + 1
        self._keys = busy * self._scale + np.minimum((places[None, :] - places[:, None]) ** 2, layers**2)
        self.solutions = 0

    def best(self, below: int = FAR) -> LayerDivision | None:
        """Return the fastest division that takes less than ``below`` units, or None."""
        least_end = self.find_bottleneck(self._end, FAR)
        if least_end is None:
            return None
        # Outer loop over the limit of e. The first search, without a limit, finds the division with the
        # fastest passes. A division with an equal or longer e cannot be better than it. So the next search
        # allows only shorter e.
        best: LayerDivision | None = None
        end_limit = FAR
        while (found := self._find_fastest_passes(end_limit, below - least_end)) is not None:
            passes = found.passes(self._micro_batches)
            if passes + found.end < below:
                best, below = found, passes + found.end
            # Under lower limits passes only get slower, and no division has an e below least_end. So stop
            # when these passes plus least_end already take too long.
            if passes + least_end >= below:
                break
            end_limit = found.end - 1
        # Several divisions may take equally long. Solve once more under the limits of the best to get the
        # most even of them.
        return best and self._find_least_sum(best.longest, best.end)

    def find_bottleneck(self, values: Whole, end_limit: int) -> int | None:
        """Return the least possible maximum of ``values`` over the stages of a division.

        Only stages with e <= end_limit are used. None: no division is allowed.
        """
        is_allowed = self._end <= end_limit
        return find_least_maximum([np.where(fits & is_allowed, values, FAR) for fits in self._fits])

    def _find_fastest_passes(self, end_limit: int, below: int) -> LayerDivision | None:
        """Return the division whose passes are fastest, among those with all e <= end_limit.

        None: there is no such division, or its passes do not take less than ``below``.
        """
        shortest = self.find_bottleneck(self._busy, end_limit)
        if shortest is None:
            return None
        quickest = self._find_least_sum(FAR, end_limit)  # no division has a smaller sum of t
        repeats = self._micro_batches - 1
        assert quickest is not None
        if quickest.total + repeats * shortest >= below:
            return None
        if not repeats:
            return quickest
        best: LayerDivision | None = None
        # Inner loop over the limit of t. Start with the smallest possible limit: its solution is usually
        # close to the optimum and gives a good bound. Then allow the longest t that could still win, and
        # lower this limit from solution to solution.
        limit, found = FAR, self._find_least_sum(shortest, end_limit)
        while found is not None:
            if (passes := found.passes(self._micro_batches)) < below:
                best, below = found, passes
            # Even with the least sum of t, a slowest stage above this limit takes ``below`` or more:
            # quickest.total + repeats * limit < below.
            limit = min(limit, (below - 1 - quickest.total) // repeats)
            if limit <= shortest:
                break
            found = self._find_least_sum(limit, end_limit)
            limit = found.longest - 1 if found else shortest
        return best

    def _find_least_sum(self, busy_limit: int, end_limit: int) -> LayerDivision | None:
        """Return the division with the least sum of t under both limits, or None if there is none.

        Among equal sums it is the most even division.
        """
        self.solutions += 1
        is_allowed = (self._busy <= busy_limit) & (self._end <= end_limit)
        keys = [np.where(fits & is_allowed, self._keys, FAR) for fits in self._fits]
        least, best = _solve_tables(keys, np.add)
        if best[-1][0] >= FAR:
            return None
        choices = self._read_choices(keys, least, best)
        times, ends = ([int(values[choice]) for choice in choices] for values in (self._busy, self._end))
        return LayerDivision(choices, sum(times), max(times), max(ends))

    def _read_choices(self, keys: list[Whole], least: list[Whole], best: list[Whole]) -> tuple[Choice, ...]:
        """Return the stages of the best division, read from the tables of the dynamic programme.

        Among equally good stages, the shortest is taken.
        """
        layers = self._busy.shape[-1] - 1
        choices, first = [], 0
        for left in reversed(range(len(keys))):
            last = int((least[left][first] + best[left - 1]).argmin()) if left else layers
            choices.append(Choice(int(keys[left][:, first, last].argmin()), first, last))
            first = last
        return tuple(choices)


def find_least_maximum(values: Sequence[Whole]) -> int | None:
    """Return the least possible maximum of ``values`` over the stages of a division.

    None if every division contains a stage that is not allowed (FAR).

    values: for each stage, from the last to the first, an array of shape (kinds, L + 1, L + 1).
    """
    _, best = _solve_tables(values, np.maximum)
    return None if best[-1][0] >= FAR else int(best[-1][0])


def _solve_tables(values: Sequence[Whole], join: np.ufunc) -> tuple[list[Whole], list[Whole]]:
    """Run the dynamic programme. Return its two tables, as lists by the number of stages that follow.

    values: as for ``find_least_maximum``. join: np.add to find the least sum over the stages, np.maximum to
    find the least maximum. least[k][first, last]: least value over the kinds for a stage of layers first to
    last - 1 that k stages follow.
    best[k][first]: least joined value of the layers from ``first`` to the end, divided into k + 1 stages.
    """
    # Three layers that take 4, 4 and 9, divided into two stages:
    #   best[0] = [17, 13, 9, FAR]  the last stage holds all layers from ``first`` on
    #   best[1][0] for the least maximum: last = 1 -> max(4, 13) = 13, last = 2 -> max(8, 9) = 9, so 9
    least = [value.min(axis=0) for value in values]
    best = [least[0][:, -1]]
    for one in least[1:]:
        # Join the value of a stage ``first`` to ``last`` - 1 with the best value of the layers from ``last``
        # on, and take the best ``last``. Clip to FAR, because the sum of many FARs would overflow.
        best.append(np.minimum(join(one, best[-1][None, :]).min(axis=1), FAR))
    return least, best
