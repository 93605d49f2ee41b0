"""The pre-training loss, and the sums for its metrics."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trainer.data.batches import RowBatch
from trainer.model.heads import Logits

CrossEntropy = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class Losses(NamedTuple):
    """fp32 scalars on the model's device: three means over the batch, then six sums.

    Only total carries gradients. Metrics over many batches are quotients of the sums:
    masked_lm_correct / masked_lm_weight, masked_lm_loss_sum / masked_lm_weight, nsp_correct / nsp_count
    and nsp_loss_sum / nsp_count.
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


def pretraining_loss(logits: Logits, batch: RowBatch, row_losses: CrossEntropy | None = None) -> Losses:
    """Weighted mean of the masked-word losses, plus mean of the next-sentence losses.

    A sequence with a negative next-sentence label (a padding row) is left out. Without any weight the
    loss is 0. row_losses: a device's implementation in place of cross_entropy.
    """
    row_losses = row_losses or cross_entropy
    labels = batch.next_sentence_labels.long()
    words, word_sums = _mean_and_sums(
        *row_losses(logits.masked_lm, logits.masked_lm_ids), logits.masked_lm_weights
    )
    pairs, pair_sums = _mean_and_sums(*row_losses(logits.next_sentence, labels.clamp(min=0)), labels >= 0)
    return Losses(words + pairs, words.detach(), pairs.detach(), *word_sums, *pair_sums)


def _mean_and_sums(losses: Tensor, right: Tensor, weights: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The weighted mean loss, with gradients, and the three sums in the order of Losses."""
    weights = weights.float()
    loss_sum = (losses * weights).sum()
    weight = weights.sum()
    mean = loss_sum / weight.clamp(min=1e-5)
    return mean, [(right * weights).sum(), weight, loss_sum.detach()]


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
