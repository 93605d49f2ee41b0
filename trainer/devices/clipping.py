"""Norms of tensors, and gradient clipping by the global norm."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bertdata.errors import SettingsError


def norms_of(tensors: Sequence[Tensor]) -> Tensor:
    """Return (n,): the Euclidean norm of each tensor."""
    return torch.stack(list(torch._foreach_norm(list(tensors))))


@torch.no_grad()
def clip_(tensors: Sequence[Tensor], max_norm: float | Tensor) -> Tensor:
    """Divide the tensors in place by max(1, norm / max_norm). Returns the norm of all of them together.

    The result equals TensorFlow's clip_by_global_norm, NVIDIA's max(1, norm / 1.0) and Graphcore's
    max(norm, 1). max_norm may be a 0-dim tensor on the device, for which nothing waits. If the norm is not
    finite, neither are the results.
    """
    if not isinstance(max_norm, Tensor) and max_norm <= 0:
        raise SettingsError(f"max_norm is {max_norm}, expected more than 0")
    if not tensors:
        return torch.zeros(())
    norm: Tensor = torch.linalg.vector_norm(norms_of(tensors))
    torch._foreach_mul_(list(tensors), (max_norm / norm).clamp(max=1.0))
    return norm
