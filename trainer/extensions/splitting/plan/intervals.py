"""Sums and maxima over every run of consecutive layers, as arrays, and the kinds of stages."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.extensions.splitting.plan.costs import ModelCosts, PartCosts

Whole = NDArray[np.int64]
Real = NDArray[np.float64]

RECOMPUTES = np.array([False, True, False, True])[:, None, None]
SHARDED = np.array([False, False, True, True])[:, None, None]
"""The kinds of stages, (kinds, 1, 1); of two that are equally fast the first is taken."""


class Intervals:
    """The layers first to last - 1 as places [first, last] of (L + 1, L + 1) arrays. Other places are unused.

    is_first, is_last: 1 where a stage of these layers has the embeddings, or the heads.
    """

    def __init__(self, costs: ModelCosts) -> None:
        self.costs = costs
        size = len(costs.layers) + 1
        self.is_first = np.zeros((size, size), dtype=np.int64)
        self.is_first[0] = 1
        self.is_last = np.zeros((size, size), dtype=np.int64)
        self.is_last[:, -1] = 1

    def total(self, name: str) -> NDArray[Any]:
        """The sum of one of the layers' costs."""
        sums = np.cumsum([0, *(getattr(layer, name) for layer in self.costs.layers)])
        return np.asarray(sums[None, :] - sums[:, None])

    def ends(self, name: str) -> NDArray[Any]:
        """One of the embeddings' costs where they are, plus the heads'."""
        costs = self.costs
        return np.asarray(
            self.is_first * getattr(costs.embeddings, name) + self.is_last * getattr(costs.heads, name)
        )

    def largest(self, value: Callable[[PartCosts], int]) -> Whole:
        """The maximum over the layers."""
        values = np.array([value(layer) for layer in self.costs.layers], dtype=np.int64)
        result = np.zeros(self.is_first.shape, dtype=np.int64)
        for first in range(len(values)):
            result[first, first + 1 :] = np.maximum.accumulate(values[first:])
        return result

    def handed_out(self) -> Whole:
        """Bytes that the stage hands over to the next one."""
        return self._handed()[None, :] * (1 - self.is_last)

    def handed_in(self) -> Whole:
        """Bytes that the stage before hands over."""
        return self._handed()[:, None] * (1 - self.is_first)

    def _handed(self) -> Whole:
        return np.array([0, *(layer.handed for layer in self.costs.layers)], dtype=np.int64)

    def parameters(self) -> Whole:
        """Values of the stage's weights. A last stage that is not the first has its own word embeddings."""
        own = self.is_last * (1 - self.is_first) * self.costs.heads.tied
        return np.asarray(self.total("parameters") + self.ends("parameters") + own)
