"""Cross-entropy loss for 16-bit logits, for devices that compute much faster than they read memory."""

from typing import Any

import torch
from torch import Tensor


def cross_entropy(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Return two fp32 numbers for each row: its loss, and whether the model's first guess is right.

    The loss is -log softmax(logits)[id]. The second number is 1.0 if the id has the largest logit, otherwise
    0.0. To save memory, the backward pass keeps the 16-bit logits instead of their fp32 softmax, and writes
    the gradient in 16 bits. A compiler turns each pass into a single kernel.
    """
    losses, best = _HalfCrossEntropy.apply(logits, ids)  # type: ignore[no-untyped-call]
    return losses, (best == ids).float()


class _HalfCrossEntropy(torch.autograd.Function):
    """Cross entropy of 16-bit logits, with its backward pass.

    The gradient of a row's logits is their softmax, minus 1 at the right id, times the gradient of the row's
    loss.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        best = logits.argmax(dim=1)
        scale = logits.float().logsumexp(dim=1)
        ctx.save_for_backward(logits, scale, ids)
        ctx.mark_non_differentiable(best)
        return scale - logits.gather(1, ids[:, None]).squeeze(1).float(), best

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        logits, scale, ids = ctx.saved_tensors
        softmax = torch.exp(logits.float() - scale[:, None])
        classes = torch.arange(logits.shape[1], device=logits.device)
        result = (softmax - (classes == ids[:, None]).float()) * gradients[0][:, None]
        return result.to(logits.dtype), None
