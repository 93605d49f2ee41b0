"""The loss of a classification, row by row."""

from typing import Any

import torch
from torch import Tensor


def cross_entropy(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """For each row -log softmax(logits)[id], and 1.0 where id has the largest logit, else 0.0; in fp32."""
    losses, best = _CrossEntropy.apply(logits, ids)  # type: ignore[no-untyped-call]
    return losses, (best == ids).float()


class _CrossEntropy(torch.autograd.Function):
    """Cross entropy that keeps the softmax and no other copy of the logits; PyTorch's keeps two more.

    Stable: with m the row's maximum and p the softmax, log p[id] = logits[id] - m + log max(p), and
    max(p) is at least 1 / (length of the row).
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        best_logit, best = logits.max(dim=1)
        softmax = torch.softmax(logits, dim=1, dtype=torch.float32)
        top = softmax.gather(1, best[:, None]).squeeze(1)
        losses = best_logit.float() - logits.gather(1, ids[:, None]).squeeze(1).float() - top.log()
        ctx.save_for_backward(softmax, ids)
        ctx.dtype = logits.dtype
        ctx.mark_non_differentiable(best)
        return losses, best

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        softmax, ids = ctx.saved_tensors
        by_row = gradients[0][:, None]
        result = softmax * by_row
        result.scatter_add_(1, ids[:, None], -by_row)
        return result.to(ctx.dtype), None
