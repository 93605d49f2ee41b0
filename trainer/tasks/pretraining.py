"""Pre-training tasks: masked words (Liu et al. 2019), alone or with next sentence (Devlin et al. 2018)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import DataError
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.model.bert import PAIR_HEAD, WORD_HEAD
from trainer.model.headed import BertForMaskedLM, BertForPreTraining, HeadedBert, Logits
from trainer.tasks.task import Columns, Outcome, RowLosses, Task, TaskModel

if TYPE_CHECKING:
    from typing_extensions import Self

    from trainer.tasks.evaluation import PretrainingEvaluation


def make_columns(metrics: tuple[str, ...], second: str = "") -> Columns:
    """Return the columns that a pre-training task has in the tables of a run.

    metrics: names of loss and accuracy, first of masked words, then of a second loss if there is one.
    second: prefix of the names of the second loss's results. "" if there is no second loss.
    """
    own = (f"{second}_accuracy", f"{second}_loss") if second else ()
    return Columns(
        training={name.replace("accuracy", "acc"): name for name in (*metrics[::2], *metrics[1::2])},
        evaluation=(
            *("loss", "masked_lm_accuracy", "masked_lm_loss", *own),
            *("most_frequent_accuracy", "guess_masked_lm_loss", *(f"guess_{name}" for name in own)),
        ),
        shown="mlm_accuracy",
        target="masked_lm_accuracy",
    )


class MaskedWords(Task):
    """Task that learns to predict masked words.

    The loss is the weighted mean of the losses of the masked words.

    row_losses: function that a device has in place of ``cross_entropy``.
    """

    name = "masked_words"
    model_class: type[HeadedBert] = BertForMaskedLM
    metrics: tuple[str, ...] = ("mlm_loss", "mlm_accuracy")
    columns = make_columns(metrics)

    def __init__(self, row_losses: RowLosses | None = None) -> None:
        self._row_losses = row_losses or cross_entropy

    @classmethod
    def configured(cls, config: Config, row_losses: RowLosses | None) -> "Self":
        return cls(row_losses)

    def outcome(self, model: TaskModel, batch: Batch) -> Outcome:
        return compute_pretraining_loss(model(batch), batch, self._row_losses)

    def survey(self, data: OpenedDataset) -> dict[str, Any]:
        from bertdata.dataset.label_counts import survey_labels

        return survey_labels(data).as_json()

    def evaluation(
        self, data: OpenedDataset, survey: Any, training: OpenedDataset | None
    ) -> "PretrainingEvaluation":
        from trainer.tasks.evaluation import PretrainingEvaluation

        return PretrainingEvaluation(data, survey, "training" if training else "evaluation")


class Pretraining(MaskedWords):
    """Task that learns masked words and next sentence. The loss is the sum of the two mean losses."""

    name = "pretraining"
    model_class = BertForPreTraining
    metrics = ("mlm_loss", "mlm_accuracy", "nsp_loss", "nsp_accuracy")
    columns = make_columns(metrics, "next_sentence")

    def check_head(self, missing: Sequence[str], path: str) -> None:
        """Raise DataError if the checkpoint has a masked-word head but no next-sentence head.

        A checkpoint without any head is accepted.
        """
        has_words = not any(name.startswith(WORD_HEAD) for name in missing)
        if has_words and any(name.startswith(PAIR_HEAD) for name in missing):
            raise DataError(
                f"{path}: has no next-sentence head, since it was trained on masked words alone; "
                "expected data without next sentences, as of the objective mlm"
            )


def cross_entropy(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each row its loss, -log softmax(logits)[id], and 1.0 if the id has the largest logit,
    otherwise 0.0.

    Both are fp32, with shape (rows,).
    """
    losses, best = _RowCrossEntropy.apply(logits, ids)  # type: ignore[no-untyped-call]
    return losses, (best == ids).float()


class _RowCrossEntropy(torch.autograd.Function):
    """Cross entropy that stores only the softmax for the backward pass.

    PyTorch's cross entropy stores two further tensors of the same size. The formula is numerically stable.
    With m the maximum of a row and p its softmax, log p[id] = logits[id] - m + log max(p), and max(p) is at
    least 1 / (length of the row).
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


def compute_pretraining_loss(logits: Logits, batch: Batch, row_losses: RowLosses = cross_entropy) -> Outcome:
    """Return the outcome of the task Pretraining, or of MaskedWords if the model has no next-sentence head.

    Sequences with a negative label are padding and do not count. If a batch has no masked word, the loss of
    masked words is 0. If it has no sequence, the loss of next sentence is 0.
    """
    loss, sums = compute_words_loss(logits, batch, row_losses)
    if logits.next_sentence is not None:
        labels = batch.next_sentence_labels.reshape(-1).long()
        pairs = row_losses(logits.next_sentence, labels.clamp(min=0))
        of_pairs, pairs_sums = average_and_sum(*pairs, labels >= 0)
        loss, sums = loss + of_pairs, [*sums, *pairs_sums]
    return Outcome(loss, torch.stack(sums))


def compute_words_loss(logits: Logits, batch: Batch, row_losses: RowLosses) -> tuple[Tensor, list[Tensor]]:
    """Return the mean loss of the masked words, and the sums of ``MaskedWords.metrics``.

    The loss is 0 if there is no masked word.
    """
    losses = row_losses(logits.masked_lm, batch.masked_lm_ids.reshape(-1).long())
    return average_and_sum(*losses, batch.masked_lm_weights.reshape(-1))


def average_and_sum(losses: Tensor, right: Tensor, weights: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return the weighted mean loss, which has gradients, and four sums without gradients.

    The sums are [loss sum, weight, number of right guesses, weight].
    losses: loss of each row.
    right: 1.0 for each row that is guessed right, otherwise 0.0.
    weights: weight of each row.
    """
    weights = weights.float()
    loss_sum = (losses * weights).sum()
    weight = weights.sum()
    mean = loss_sum / weight.clamp(min=1e-5)
    return mean, [loss_sum.detach(), weight, (right * weights).sum(), weight]
