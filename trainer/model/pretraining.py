"""Pre-training of BERT: masked words and next sentence (Devlin et al. 2018)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import DataError
from trainer.data.batches import Batch
from trainer.model.bert import PAIR_HEAD, WORD_HEAD, BertForPreTraining, Logits
from trainer.model.masked_words import MaskedWords, cross_entropy, mean_and_sums, words_loss
from trainer.model.task import Columns, Model, Outcome, RowLosses

if TYPE_CHECKING:
    from trainer.model.evaluation import PretrainingEvaluation


class Pretraining(MaskedWords):
    """Weighted mean of the masked-word losses, plus mean of the next-sentence losses."""

    name = "pretraining"
    model_class = BertForPreTraining
    metrics = ("mlm_loss", "mlm_accuracy", "nsp_loss", "nsp_accuracy")
    columns = Columns(
        training={
            "mlm_loss": "mlm_loss",
            "nsp_loss": "nsp_loss",
            "mlm_acc": "mlm_accuracy",
            "nsp_acc": "nsp_accuracy",
        },
        evaluation=(
            "loss",
            "masked_lm_accuracy",
            "masked_lm_loss",
            "next_sentence_accuracy",
            "next_sentence_loss",
            "most_frequent_accuracy",
        ),
        shown="mlm_accuracy",
        target="masked_lm_accuracy",
        curves={"masked words": ("mlm", "masked_lm"), "next sentence": ("nsp", "next_sentence")},
    )

    def outcome(self, model: Model, batch: Batch) -> Outcome:
        return pretraining_loss(model(batch), batch, self._row_losses)

    def check_head(self, missing: Sequence[str], path: str) -> None:
        """DataError for weights that were trained on masked words alone, but not for an encoder."""
        has_words = not any(name.startswith(WORD_HEAD) for name in missing)
        if has_words and any(name.startswith(PAIR_HEAD) for name in missing):
            raise DataError(
                f"{path}: has no next-sentence head, since it was trained on masked words alone; "
                "expected data without next sentences, as of the objective mlm"
            )

    def evaluation(
        self, data: OpenedDataset, survey: Any, training: OpenedDataset | None
    ) -> "PretrainingEvaluation":
        from trainer.model.evaluation import PretrainingEvaluation

        return PretrainingEvaluation(data, survey, "training" if training else "evaluation")


def pretraining_loss(logits: Logits, batch: Batch, row_losses: RowLosses = cross_entropy) -> Outcome:
    """The loss and the sums of Pretraining.metrics.

    A sequence with a negative label (a padding row) is left out of both. Without any masked word, or any
    sequence, that part of the loss is 0.
    """
    assert logits.next_sentence is not None
    labels = batch.next_sentence_labels.reshape(-1).long()
    of_words, words_sums = words_loss(logits, row_losses)
    pairs = row_losses(logits.next_sentence, labels.clamp(min=0))
    of_pairs, pairs_sums = mean_and_sums(*pairs, labels >= 0)
    return Outcome(of_words + of_pairs, torch.stack([*words_sums, *pairs_sums]))
