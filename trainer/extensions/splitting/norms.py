"""Norms of a model of which each worker has some rows of the weights, or one stage."""

from collections.abc import Mapping, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.extensions.splitting.subgroups import Subgroup
from trainer.update.optimiser import LOCAL_NORMS, Norms


class ShardNorms(Norms):
    """Norms of weights and gradients whose rows are divided among the processes of a group."""

    def __init__(self, group: dist.ProcessGroup, sizes: Mapping[Tensor, int]) -> None:
        """sizes: elements of the whole of each weight."""
        self._group, self._sizes = group, sizes

    def size(self, weight: Tensor) -> int:
        return self._sizes[weight]

    def each(self, tensors: Sequence[Tensor]) -> Tensor:
        return self._of(LOCAL_NORMS.each(tensors))

    def all(self, tensors: Sequence[Tensor]) -> Tensor:
        return self._of(LOCAL_NORMS.all(tensors))

    def _of(self, norms: Tensor) -> Tensor:
        """The norms of the whole, of which these are those of the own rows."""
        squares = norms.square()
        dist.all_reduce(squares, group=self._group)
        return squares.sqrt_()


class StageNorms(Norms):
    """Norms over the stages of a pipeline, each of which has whole weights or shards of them.

    The norms of all weights are brought together in the order of the whole model, so that the norm of all
    has the bits that one process gives for the same gradients.
    """

    def __init__(
        self, group: Subgroup, order: Sequence[str], names: Sequence[str], of_weights: Norms
    ) -> None:
        """order: names of the whole model's trained weights, in the order of the optimiser's groups.

        names: those of this stage, in that order; "" in place of one that another stage counts. of_weights:
        norms of this stage's weights.
        """
        self._group, self._of_weights = group, of_weights
        self._size, self._own = len(order), len(names)
        self._counted = [number for number, name in enumerate(names) if name]
        self._places = [order.index(names[number]) for number in self._counted]

    def size(self, weight: Tensor) -> int:
        return self._of_weights.size(weight)

    def each(self, tensors: Sequence[Tensor]) -> Tensor:
        return self._of_weights.each(tensors)

    def all(self, tensors: Sequence[Tensor]) -> Tensor:
        assert len(tensors) == self._own, "a weight without gradient"
        own = self.each(tensors)
        every = own.new_zeros(self._size)
        every[self._places] = own[self._counted]
        self._group.sum(every)
        return torch.linalg.vector_norm(every)
