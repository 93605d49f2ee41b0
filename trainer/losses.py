"""The pre-training loss, and the sums that its metrics are made of."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainer.model import Examples, Logits


@dataclass(frozen=True, slots=True)
class Losses:
    """fp32 scalars on the model's device; total is the one to differentiate.

    masked_lm and next_sentence are means over this batch. Metrics over many batches are quotients of
    the sums: masked_lm_correct / masked_lm_weight, masked_lm_loss_sum / masked_lm_weight, and
    likewise nsp_correct and nsp_loss_sum by nsp_count.
    """

    total: Tensor
    masked_lm: Tensor
    next_sentence: Tensor
    masked_lm_correct: Tensor
    masked_lm_weight: Tensor
    masked_lm_loss_sum: Tensor
    nsp_correct: Tensor
    nsp_count: Tensor
    nsp_loss_sum: Tensor


def pretraining_loss(logits: Logits, batch: Examples) -> Losses:
    """Mean masked-word loss by weight, plus mean next-sentence loss.

    A negative next-sentence label leaves its sequence out (rows that only fill up a batch). Where
    nothing counts at all the loss is 0.
    """
    words, words_right = cross_entropy(logits.masked_lm, logits.masked_lm_ids)
    labels = batch.next_sentence_labels.long()
    counted = (labels >= 0).float()
    pairs, pairs_right = cross_entropy(logits.next_sentence, labels.clamp(min=0))
    weights = logits.masked_lm_weights.float()
    words_sum, words_weight = (words * weights).sum(), weights.sum()
    pairs_sum, pairs_count = (pairs * counted).sum(), counted.sum()
    masked_lm = words_sum / words_weight.clamp(min=1e-5)
    next_sentence = pairs_sum / pairs_count.clamp(min=1e-5)
    return Losses(
        total=masked_lm + next_sentence,
        masked_lm=masked_lm.detach(),
        next_sentence=next_sentence.detach(),
        masked_lm_correct=(words_right * weights).sum(),
        masked_lm_weight=words_weight,
        masked_lm_loss_sum=words_sum.detach(),
        nsp_correct=(pairs_right * counted).sum(),
        nsp_count=pairs_count,
        nsp_loss_sum=pairs_sum.detach(),
    )


def cross_entropy(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row, -log softmax(logits)[id] and whether id has the largest logit (1.0 or 0.0), in fp32."""
    losses, best = _CrossEntropy.apply(logits, ids)  # type: ignore[no-untyped-call]
    return losses, (best == ids).float()


class _CrossEntropy(torch.autograd.Function):
    """Keeps the softmax and no other copy of the logits; PyTorch's own keeps and fills two more.

    Stable: with m the row's maximum and p the softmax, log p[id] = logits[id] - m + log max(p), and
    max(p) is at least 1 over the row's length.
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
