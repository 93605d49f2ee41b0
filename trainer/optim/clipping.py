"""Gradient clipping by global norm."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bertdata.errors import SettingsError


@torch.no_grad()
def clip_(tensors: Sequence[Tensor], max_norm: float) -> Tensor:
    """Divide the tensors in place by max(1, norm / max_norm); returns the norm of all of them together.

    The result equals TensorFlow's clip_by_global_norm, NVIDIA's max(1, norm / 1.0) and Graphcore's
    max(norm, 1). It does not wait for the device. If the norm is not finite, neither are the results.
    """
    if max_norm <= 0:
        raise SettingsError(f"max_norm is {max_norm}, expected more than 0")
    tensors = list(tensors)
    if not tensors:
        return torch.zeros(())
    norm: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(tensors)))
    torch._foreach_mul_(tensors, (max_norm / norm).clamp(max=1.0))
    return norm
