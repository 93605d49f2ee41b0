"""The GPU's classification loss beside the one that keeps the softmax; both run on any device."""

import math

import pytest
import torch

from trainer.devices import cuda_losses
from trainer.tasks.pretraining import cross_entropy

TOLERANCE = {torch.float32: 1e-6, torch.bfloat16: 8e-3}


def drawn(dtype: torch.dtype, rows: int = 7, classes: int = 50) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits with columns of padding, and ids; the first row's are large, the second's id is the largest."""
    draw = torch.Generator().manual_seed(3)
    logits = torch.randn(rows, classes, generator=draw)
    ids = torch.randint(classes - 2, (rows,), generator=draw)
    logits[0] *= 1e4
    logits[1, ids[1]] = 9.0
    logits[:, -2:] = -math.inf
    return logits.to(dtype), ids


def with_gradient(function, logits, ids):
    leaf = logits.clone().requires_grad_()
    found, right = function(leaf, ids)
    weights = torch.linspace(0, 1, len(ids))  # a row without a weight among them
    (found * weights).sum().backward()
    return found.detach(), right, leaf.grad


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_loss_hits_and_gradient_are_those_of_the_softmax(dtype):
    logits, ids = drawn(dtype)
    found, right, gradient = with_gradient(cuda_losses.cross_entropy, logits, ids)
    expected, hits, expected_gradient = with_gradient(cross_entropy, logits, ids)
    assert (found.dtype, gradient.dtype) == (torch.float32, dtype)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradient, expected_gradient, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    assert right.tolist() == hits.tolist()
    assert 0 < right.sum() < len(ids)


def test_nothing_larger_than_the_logits_is_kept_for_the_backward_pass():
    logits, ids = drawn(torch.bfloat16)
    leaf = logits.clone().requires_grad_()
    kept = list[torch.Tensor]()

    def keep(tensor):
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        cuda_losses.cross_entropy(leaf, ids)
    assert sum(tensor.nbytes for tensor in kept if tensor.numel() >= logits.numel()) == logits.nbytes
