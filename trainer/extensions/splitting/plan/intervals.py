"""Sums and maxima over every run of consecutive layers, as arrays."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from trainer.extensions.splitting.plan.costs import ModelCosts, PartCosts

Whole = NDArray[np.int64]
Real = NDArray[np.float64]


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
        self.is_stage = np.triu(np.ones((size, size), dtype=np.bool_), 1)

    def total(self, name: str) -> Whole:
        """The sum of a whole number of the layers' costs."""
        sums = np.cumsum([0] + [getattr(layer, name) for layer in self.costs.layers], dtype=np.int64)
        return np.asarray(sums[None, :] - sums[:, None])

    def seconds(self, name: str) -> Real:
        """The sum of a time of the layers."""
        sums = np.cumsum([0.0] + [getattr(layer, name) for layer in self.costs.layers])
        return np.asarray(sums[None, :] - sums[:, None])

    def largest(self, value: Callable[[PartCosts], int]) -> Whole:
        """The maximum over the layers."""
        values = np.array([value(layer) for layer in self.costs.layers], dtype=np.int64)
        result = np.zeros(self.is_first.shape, dtype=np.int64)
        for first in range(len(values)):
            result[first, first + 1 :] = np.maximum.accumulate(values[first:])
        return result

    def ends(self, name: str) -> Whole:
        """The embeddings' whole number where they are, plus the heads'."""
        costs = self.costs
        first: int = getattr(costs.embeddings, name)
        last: int = getattr(costs.heads, name)
        return self.is_first * first + self.is_last * last

    def handed_in(self) -> Whole:
        """Bytes that the stage before hands over."""
        handed = [0] + [layer.handed for layer in self.costs.layers]
        return np.broadcast_to(np.array(handed)[:, None], self.is_first.shape) * (1 - self.is_first)

    def handed_out(self) -> Whole:
        """Bytes that the stage hands over to the next one."""
        handed = [0] + [layer.handed for layer in self.costs.layers]
        return np.broadcast_to(np.array(handed)[None, :], self.is_last.shape) * (1 - self.is_last)

    def parameters(self) -> Whole:
        """Values of the stage's weights. A last stage that is not the first has its own word embeddings."""
        own = self.is_last * (1 - self.is_first) * self.costs.heads.tied
        return self.total("parameters") + self.ends("parameters") + own
