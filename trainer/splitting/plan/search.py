"""Search of the fastest division of layers into stages, exact for every cost of every possible stage.

A division takes ``sum of t + (m - 1) * max t + max e`` over its stages, with m micro-batches, t the time that
one keeps the stage busy and e the stage's time after the last one. Dynamic programming over (stages left,
first layer) gives the least sum of t under upper limits of t and e. Lowering the limits from solution to
solution, until no lower ones can pay, gives the least total. Times are whole numbers, so that all processes
find the same division.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainer.splitting.plan.stages import Whole

FAR = 2**61
"""A time beyond all others; twice its value is still a number of 64 bits."""


class Choice(NamedTuple):
    """A stage: its kind's number and its layers first to last - 1."""

    kind: int
    first: int
    last: int


class LayerDivision(NamedTuple):
    """Stages with the sum of their times, the longest time and the longest end."""

    choices: tuple[Choice, ...]
    total: int
    longest: int
    end: int

    def passes(self, micro_batches: int) -> int:
        """The time of all forward and backward passes."""
        return self.total + (micro_batches - 1) * self.longest


class Search:
    """The search of one number of stages and of micro-batches.

    busy, end: (kinds, L + 1, L + 1) whole numbers, t and e of each stage; times all sums of which are below
    2^60 / (L^2 + 1). fits: for each stage from the last one on, which of them are allowed. solutions: the
    number of dynamic programs solved.
    """

    def __init__(
        self, busy: Whole, end: Whole, fits: Sequence[NDArray[np.bool_]], micro_batches: int
    ) -> None:
        self._busy, self._end, self._fits, self._micro_batches = busy, end, fits, micro_batches
        layers = busy.shape[-1] - 1
        # Among equal sums of times, the least sum of squared lengths: the most even division.
        places = np.arange(layers + 1)
        self._scale = layers**2 + 1
        self._keys = busy * self._scale + np.minimum((places[None, :] - places[:, None]) ** 2, layers**2)
        self.solutions = 0

    def best(self, below: int = FAR) -> LayerDivision | None:
        """The fastest division whose time is below the bound, or None."""
        least_end = self.bottleneck(self._end, FAR)
        if least_end is None:
            return None
        best: LayerDivision | None = None
        end_limit = FAR
        while (found := self._fastest_passes(end_limit, below - least_end)) is not None:
            passes = found.passes(self._micro_batches)
            if passes + found.end < below:
                best, below = found, passes + found.end
            if passes + least_end >= below:
                break
            end_limit = found.end - 1  # with ends as long as these, no passes are faster
        return best and self._solve(best.longest, best.end)

    def bottleneck(self, values: Whole, end_limit: int) -> int | None:
        """The least possible maximum of the stages' values, or None if no division is allowed."""
        is_allowed = self._end <= end_limit
        return least_maximum([np.where(fits & is_allowed, values, FAR) for fits in self._fits])

    def _fastest_passes(self, end_limit: int, below: int) -> LayerDivision | None:
        """The division whose passes are fastest, and below the bound."""
        shortest = self.bottleneck(self._busy, end_limit)
        if shortest is None:
            return None
        quickest = self._solve(FAR, end_limit)  # has the least sum of times
        repeats = self._micro_batches - 1
        assert quickest is not None
        if quickest.total + repeats * shortest >= below:
            return None
        if not repeats:
            return quickest
        best: LayerDivision | None = None
        limit, found = FAR, self._solve(shortest, end_limit)
        while found is not None:
            if (passes := found.passes(self._micro_batches)) < below:
                best, below = found, passes
            # A longer longest time than this would not be made good by the least sum.
            limit = min(limit, (below - 1 - quickest.total) // repeats)
            if limit <= shortest:
                break
            found = self._solve(limit, end_limit)
            limit = found.longest - 1 if found else shortest
        return best

    def _solve(self, busy_limit: int, end_limit: int) -> LayerDivision | None:
        """The division with the least sum of times, then the most even one, under the limits."""
        self.solutions += 1
        is_allowed = (self._busy <= busy_limit) & (self._end <= end_limit)
        keys = [np.where(fits & is_allowed, self._keys, FAR) for fits in self._fits]
        least, best = _least_from(keys, np.add)
        if best[-1][0] >= FAR:
            return None
        choices = self._choices(keys, least, best)
        times, ends = ([int(values[choice]) for choice in choices] for values in (self._busy, self._end))
        return LayerDivision(choices, sum(times), max(times), max(ends))

    def _choices(self, keys: list[Whole], least: list[Whole], best: list[Whole]) -> tuple[Choice, ...]:
        """The stages that the tables of a dynamic program lead to, the first among equals."""
        layers = self._busy.shape[-1] - 1
        choices, first = [], 0
        for left in reversed(range(len(keys))):
            last = int((least[left][first] + best[left - 1]).argmin()) if left else layers
            choices.append(Choice(int(keys[left][:, first, last].argmin()), first, last))
            first = last
        return tuple(choices)


def least_maximum(values: Sequence[Whole]) -> int | None:
    """The least possible maximum over the stages of a division, or None if each division has a FAR stage.

    values: of each stage from the last one on, (kinds, L + 1, L + 1).
    """
    _, best = _least_from(values, np.maximum)
    return None if best[-1][0] >= FAR else int(best[-1][0])


def _least_from(values: Sequence[Whole], join: np.ufunc) -> tuple[list[Whole], list[Whole]]:
    """The least value of each stage's kinds, and the least of joined stages from each first layer to the end.

    values: as for ``least_maximum``. Both are lists by the number of stages left.
    """
    least = [value.min(axis=0) for value in values]
    best = [least[0][:, -1]]
    for one in least[1:]:
        best.append(np.minimum(join(one, best[-1][None, :]).min(axis=1), FAR))
    return least, best
