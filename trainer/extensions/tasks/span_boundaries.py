"""The task of masked spans: masked words, and each span's words from its boundaries (Joshi et al. 2020)."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from bertdata.dataset.reader import OpenedDataset
from trainer.data.batches import Batch
from trainer.extensions.tasks.span_model import BertForSpanBoundaries, span_slots
from trainer.model.evaluation import MetricTotals, PretrainingEvaluation, sums_of_guess
from trainer.model.pretraining import MaskedWords, columns_of, mean_and_sums, words_loss
from trainer.model.task import Outcome


class SpanBoundaries(MaskedWords):
    """Weighted mean of the masked-word losses, plus that of the same words guessed from the boundaries."""

    name = "span_boundaries"
    model_class = BertForSpanBoundaries
    metrics = ("mlm_loss", "mlm_accuracy", "boundary_loss", "boundary_accuracy")
    columns = columns_of(metrics, "boundary")

    def outcome(self, model: Any, batch: Batch) -> Outcome:
        logits = model(batch)
        of_words, sums = words_loss(logits, batch, self._row_losses)
        losses = self._row_losses(logits.boundary, batch.masked_lm_ids.reshape(-1).long())
        of_boundaries, more = mean_and_sums(*losses, logits.boundary_weights)
        return Outcome(of_words + of_boundaries, torch.stack([*sums, *more]))

    def evaluation(
        self, data: OpenedDataset, survey: Any, training: OpenedDataset | None
    ) -> "SpanBoundaryEvaluation":
        return SpanBoundaryEvaluation(data, survey, "training" if training else "evaluation")


class SpanBoundaryEvaluation(PretrainingEvaluation):
    """Accuracy and loss of masked words, and of spans' words from the boundaries, beside those of guesses."""

    def __init__(self, data: OpenedDataset, survey: Mapping[str, Any], source: str) -> None:
        super().__init__(data, survey, source)
        self.metrics = (*self.metrics, "guess_boundary_accuracy", "guess_boundary_loss")

    def host_sums(self, batch: Batch) -> Tensor:
        ids, weights = batch.masked_lm_ids.reshape(-1), span_slots(batch).weights
        of_boundaries = sums_of_guess(ids, weights, self._labels.words, self._word_losses)
        return torch.cat([super().host_sums(batch), torch.stack(of_boundaries)])

    def results(self, totals: MetricTotals, kept: Sequence[Any]) -> dict[str, float]:
        found = super().results(totals, kept)
        for name, (total, weight) in totals.items():
            if "boundary" in name:
                found[name] = total / max(weight, 1e-5)
        return found | {"loss": found["loss"] + found["boundary_loss"]}

    def describe(self, results: Mapping[str, float]) -> str:
        of_boundaries = (
            "boundary_accuracy {boundary_accuracy:.5f} (always {word}: {guess_boundary_accuracy:.5f}), "
            "boundary_loss {boundary_loss:.4f} (by frequency: {guess_boundary_loss:.4f})"
        ).format(word=self._labels.word, **results)
        return f"{super().describe(results)}, {of_boundaries}"
