"""Norms of weights and gradients, of which a process may hold only parts."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor


class Norms(Protocol):
    """Norms over all processes that hold the model; each must make the same calls, in the same order."""

    def each(self, tensors: Sequence[Tensor]) -> Tensor:
        """(n,): the norm of each weight, or of its gradient, of which a tensor is this process's part."""
        ...

    def all(self, tensors: Sequence[Tensor]) -> Tensor:
        """0-dim: the norm of the whole model's gradients together, of which the tensors are this process's.

        The tensors are those of all weights that have a gradient, in the order of the optimiser's groups.
        """
        ...


class LocalNorms:
    """Norms of the tensors as they are: each process holds the whole model."""

    def each(self, tensors: Sequence[Tensor]) -> Tensor:
        return torch.stack(list(torch._foreach_norm(list(tensors))))

    def all(self, tensors: Sequence[Tensor]) -> Tensor:
        norm: Tensor = torch.linalg.vector_norm(self.each(tensors))
        return norm


LOCAL_NORMS = LocalNorms()
