"""Norms of tensors, and gradient clipping by the global norm."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bertdata.errors import SettingsError

_BLOCK = 1024
_LARGE = 4 * _BLOCK
"""Largest number of elements for which PyTorch's fp32 sum of squares is accurate enough on a CPU. Larger
tensors are summed in blocks.
"""


def compute_norms(tensors: Sequence[Tensor]) -> Tensor:
    """Return the Euclidean norm of each tensor, shape (n,), with a relative error below 1e-6.

    On a CPU, PyTorch sums the squares in fp32 with few partial sums, so rounding errors pile up: the norm of
    30,522 x 768 numbers comes out 0.13 % too small. Therefore large tensors in host memory are summed in
    blocks, and the sums of the blocks are added in float64.
    """
    if tensors[0].device.type != "cpu" or all(tensor.numel() <= _LARGE for tensor in tensors):
        return torch.stack(list(torch._foreach_norm(list(tensors))))
    return torch.stack([_compute_host_norm(tensor) for tensor in tensors])


def _compute_host_norm(tensor: Tensor) -> Tensor:
    """Return the norm of a tensor in host memory. A large tensor is summed block by block."""
    if tensor.numel() <= _LARGE:
        found: Tensor = torch.linalg.vector_norm(tensor)
        return found
    flat = tensor.reshape(-1)
    whole = flat.numel() // _BLOCK * _BLOCK
    blocks = torch.linalg.vector_norm(flat[:whole].view(-1, _BLOCK), dim=1)
    rest = torch.linalg.vector_norm(flat[whole:]).reshape(1)
    norm: Tensor = torch.linalg.vector_norm(torch.cat([blocks, rest]).double())
    return norm.to(tensor.dtype)


@torch.no_grad()
def clip_(tensors: Sequence[Tensor], max_norm: float | Tensor, norm: Tensor | None = None) -> Tensor:
    """Divide the tensors in place by max(1, norm / max_norm). Return the norm of all tensors together.

    The result equals TensorFlow's clip_by_global_norm, NVIDIA's max(1, norm / 1.0) and Graphcore's max(norm,
    1). If the norm is not finite, the clipped values are not finite either.
    max_norm: the largest allowed norm, as a number or as a 0-dim tensor on the device. With a tensor, the
    host does not have to wait for its value.
    norm: the norm to clip by, if the caller knows it. None: compute the norm of the tensors.
    """
    if not isinstance(max_norm, Tensor) and max_norm <= 0:
        raise SettingsError(f"max_norm is {max_norm}, expected more than 0")
    if not tensors:
        return torch.zeros(())
    if norm is None:
        norm = torch.linalg.vector_norm(compute_norms(tensors))
    torch._foreach_mul_(list(tensors), (max_norm / norm).clamp(max=1.0))
    return norm
