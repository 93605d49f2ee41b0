"""Search for the fastest division of the layers into stages.

The search is exact: no other division is faster, whatever the stages cost.

With m micro-batches, a division takes the time ``sum(t) + (m - 1) * max(t) + max(e)``. Here t is the time for
which a micro-batch keeps a stage busy. e is the time that a stage needs after its last micro-batch, for the
all-reduce and the optimiser. Sums and maxima are taken over the stages.

Dynamic programming over (stages left, first layer) easily finds the least sum, but the two maxima are not
sums. So the search sets upper limits for t and e, and finds the least sum of t under these limits. It lowers
the limits from solution to solution, until no lower limit can give a faster division. Times are whole
numbers, so that all processes find the same division.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainer.splitting.plan.stages import Whole

NOT_ALLOWED = 2**61
"""Value in the tables for stages that are not allowed.

It is larger than every time, and twice this value still fits into 64 bits.
"""


class Choice(NamedTuple):
    """A stage of the layers ``first`` to ``last - 1``.

    kind: number from 0 to 3 that says whether the stage recomputes activations and whether it is sharded.
    """

    kind: int
    first: int
    last: int


class LayerDivision(NamedTuple):
    """A division of the layers into stages, with its times in units of the search.

    choices: the stages from the first to the last.
    total: sum of the times for which a micro-batch keeps each stage busy.
    longest: the longest of these times.
    end: the longest time that a stage needs after its last micro-batch.
    """

    choices: tuple[Choice, ...]
    total: int
    longest: int
    end: int

    def passes(self, micro_batches: int) -> int:
        """Return the time that all forward and backward passes of an update take."""
        return self.total + (micro_batches - 1) * self.longest


class Search:
    """Search for the fastest division into a fixed number of stages, with a fixed number of micro-batches.

    busy: table of the times t of every possible stage (see the top of this module). Its shape is
        (kinds, L + 1, L + 1) for L layers, and its values are whole numbers. Any sum of them must stay
        below 2^60 / (L^2 + 1).
    end: table of the times e of every possible stage, with the same shape and limit.
    fits: for each stage, from the last to the first, a table that says which stages are allowed.
    micro_batches: number of micro-batches per update.
    solutions: number of dynamic programmes solved so far.
    """

    def __init__(
        self, busy: Whole, end: Whole, fits: Sequence[NDArray[np.bool_]], micro_batches: int
    ) -> None:
        self._busy, self._end, self._fits, self._micro_batches = busy, end, fits, micro_batches
        layers = busy.shape[-1] - 1
        # A key combines two numbers: the stage's time, and in the lower digits the square of its number of
        # layers. So the least sum of keys has the least sum of times, and among equal sums it is the most
        # even division. For example, 2 + 2 layers (4 + 4 = 8) are preferred to 1 + 3 layers (1 + 9 = 10). The
        # squares sum to at most L^2, so they never change the times.
        places = np.arange(layers + 1)
        self._scale = layers**2 + 1
        self._keys = busy * self._scale + np.minimum((places[None, :] - places[:, None]) ** 2, layers**2)
        self.solutions = 0

    def best(self, below: int = NOT_ALLOWED) -> LayerDivision | None:
        """Return the fastest division. None if no division takes less than ``below`` units of time."""
        least_end = self.find_bottleneck(self._end, NOT_ALLOWED)
        if least_end is None:
            return None
        # The outer loop lowers the limit of e. The first search, without a limit, finds the division with the
        # fastest passes. Another division can be faster only if its longest e is shorter. So the next search
        # allows only shorter e.
        best: LayerDivision | None = None
        end_limit = NOT_ALLOWED
        while (found := self._find_fastest_passes(end_limit, below - least_end)) is not None:
            passes = found.passes(self._micro_batches)
            if passes + found.end < below:
                best, below = found, passes + found.end
            # Under lower limits the passes only get slower, and no division has a longest e below least_end.
            # So stop when these passes and least_end together already take too long.
            if passes + least_end >= below:
                break
            end_limit = found.end - 1
        # Several divisions may take equally long. Solve once more under the limits of the best division, to
        # get the most even of them.
        return best and self._find_least_sum(best.longest, best.end)

    def find_bottleneck(self, values: Whole, end_limit: int) -> int | None:
        """Return the least possible maximum of ``values`` over the stages of a division.

        None if no division is allowed.

        values: table with a value for every possible stage.
        end_limit: only stages with e <= end_limit are allowed.
        """
        is_allowed = self._end <= end_limit
        return find_least_maximum([np.where(fits & is_allowed, values, NOT_ALLOWED) for fits in self._fits])

    def _find_fastest_passes(self, end_limit: int, below: int) -> LayerDivision | None:
        """Return the division with the fastest passes, among the divisions in which each
        stage has e <= end_limit.

        None if there is no such division, or if its passes do not take less than ``below`` units of time.
        """
        shortest = self.find_bottleneck(self._busy, end_limit)
        if shortest is None:
            return None
        quickest = self._find_least_sum(NOT_ALLOWED, end_limit)  # no division has a smaller sum of t
        repeats = self._micro_batches - 1
        assert quickest is not None
        if quickest.total + repeats * shortest >= below:
            return None
        if not repeats:
            return quickest
        best: LayerDivision | None = None
        # The inner loop lowers the limit of t. It starts with the smallest possible limit, whose solution is
        # usually close to the optimum and gives a good bound. Then it allows the longest t that could still
        # be faster, and lowers this limit from solution to solution.
        limit, found = NOT_ALLOWED, self._find_least_sum(shortest, end_limit)
        while found is not None:
            if (passes := found.passes(self._micro_batches)) < below:
                best, below = found, passes
            # Even with the least sum of t, a division whose slowest stage is above this limit takes ``below``
            # units or more. The limit follows from quickest.total + repeats * limit < below.
            limit = min(limit, (below - 1 - quickest.total) // repeats)
            if limit <= shortest:
                break
            found = self._find_least_sum(limit, end_limit)
            limit = found.longest - 1 if found else shortest
        return best

    def _find_least_sum(self, busy_limit: int, end_limit: int) -> LayerDivision | None:
        """Return the division with the least sum of t under both limits, or None if no division is allowed.

        Among divisions with equal sums, it is the most even one.
        busy_limit: largest t that a stage may have.
        end_limit: largest e that a stage may have.
        """
        self.solutions += 1
        is_allowed = (self._busy <= busy_limit) & (self._end <= end_limit)
        keys = [np.where(fits & is_allowed, self._keys, NOT_ALLOWED) for fits in self._fits]
        least, best = _solve_tables(keys, np.add)
        if best[-1][0] >= NOT_ALLOWED:
            return None
        choices = self._read_choices(keys, least, best)
        times, ends = ([int(values[choice]) for choice in choices] for values in (self._busy, self._end))
        return LayerDivision(choices, sum(times), max(times), max(ends))

    def _read_choices(self, keys: list[Whole], least: list[Whole], best: list[Whole]) -> tuple[Choice, ...]:
        """Return the stages of the best division, from the tables that ``_solve_tables`` returns.

        Among equally good stages, the shortest is taken.
        keys: for each stage, from the last to the first, a table with a key per kind, first layer, and end.
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

    None if every division contains a stage that is not allowed (NOT_ALLOWED).
    values: for each stage, from the last to the first, an array of shape (kinds, L + 1, L + 1).
    """
    _, best = _solve_tables(values, np.maximum)
    return None if best[-1][0] >= NOT_ALLOWED else int(best[-1][0])


def _solve_tables(values: Sequence[Whole], join: np.ufunc) -> tuple[list[Whole], list[Whole]]:
    """Run the dynamic programme.

    Return its two lists of tables, with one table per number of stages that follow.

    The table least[k] has at [first, last] the least value over the kinds, for a stage of layers first to
    last - 1 that k stages follow. The table best[k] has at [first] the best joined value of the layers from
    ``first`` to the end, divided into k + 1 stages.
    values: for each stage, from the last to the first, an array of shape (kinds, L + 1, L + 1).
    join: np.add to find the least sum over the stages, or np.maximum to find the least maximum.
    """
    # Example: three layers that take 4, 4 and 9 are divided into two stages.
    #   best[0] = [17, 13, 9, NOT_ALLOWED], since the last stage has all layers from ``first`` on.
    #   best[1][0] with the least maximum: the first stage may end before layer 1, max(4, 13) = 13,
    #   or before layer 2, max(8, 9) = 9. So it is 9.
    least = [value.min(axis=0) for value in values]
    best = [least[0][:, -1]]
    for one in least[1:]:
        # Join the value of a stage of layers ``first`` to ``last`` - 1 with the best value of the layers from
        # ``last`` on, and take the best ``last``. Limit the result to NOT_ALLOWED, because the sum of many
        # such values would overflow.
        best.append(np.minimum(join(one, best[-1][None, :]).min(axis=1), NOT_ALLOWED))
    return least, best
