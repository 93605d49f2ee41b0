"""Norms of a model whose stages are on different workers."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from trainer.extensions.splitting.subgroups import Subgroup
from trainer.update.optimiser import LOCAL_NORMS, Norms


class StageNorms(Norms):
    """Norms over the stages of a pipeline, each of which has whole weights.

    The norms of all weights are brought together in the order of the whole model, so that the norm of all
    has the bits that one process gives for the same gradients.
    """

    def __init__(
        self, group: Subgroup, order: Sequence[str], names: Sequence[str], of_weights: Norms = LOCAL_NORMS
    ) -> None:
        """order: names of the whole model's trained weights, in the order of the optimiser's groups.

        names: those of this stage, in that order; "" in place of one that another stage counts. of_weights:
        norms of this stage's weights, of which it may hold shards.
        """
        self._group = group
        self._of_weights = of_weights
        self._size = len(order)
        at: Mapping[str, int] = {name: place for place, name in enumerate(order)}
        self._counted = [number for number, name in enumerate(names) if name]
        self._places = [at[names[number]] for number in self._counted]
        self._own = len(names)

    def each(self, tensors: Sequence[Tensor]) -> Tensor:
        return self._of_weights.each(tensors)

    def all(self, tensors: Sequence[Tensor]) -> Tensor:
        assert len(tensors) == self._own, "a weight without gradient"
        own = self.each(tensors)
        every = own.new_zeros(self._size)
        every[self._places] = own[self._counted]
        self._group.sum(every)
        norm: Tensor = torch.linalg.vector_norm(every)
        return norm
