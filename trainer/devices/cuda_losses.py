"""The loss of a classification where logits have 16 bits and memory is slow beside arithmetic."""

from typing import Any

import torch
from torch import Tensor


def cross_entropy(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """For each row -log softmax(logits)[id], and 1.0 where id has the largest logit, else 0.0, in fp32.

    The logits themselves are kept for the backward pass, not their softmax in fp32, and their gradient is
    written in their type: a compiler makes one kernel of each pass.
    """
    losses, best = _HalfCrossEntropy.apply(logits, ids)  # type: ignore[no-untyped-call]
    return losses, (best == ids).float()


class _HalfCrossEntropy(torch.autograd.Function):
    """A logit's gradient is softmax, less 1 at the id, times the gradient of the row's loss."""

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
