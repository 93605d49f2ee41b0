"""SpanBERT's task (Joshi et al. 2020): masked words, predicted by two heads.

The first head is the usual one for masked words. The second head predicts the words of a masked span from the
span's boundaries, which are the tokens directly before and after it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from bertdata.dataset.reader import OpenedDataset
from trainer.config.model import ModelConfig
from trainer.data.batches import Batch, FlatAttention
from trainer.model.bert import attend_with_pytorch
from trainer.model.headed import BertForMaskedLM, Logits
from trainer.model.layers import ACTIVATIONS, LayerOutput, NormedDense
from trainer.tasks.evaluation import MetricTotals, PretrainingEvaluation, sum_guess_metrics
from trainer.tasks.pretraining import MaskedWords, average_and_sum, compute_words_loss, make_columns
from trainer.tasks.task import Outcome, TaskModel

PLACES = 15
"""Number of ids at the start of a span that are predicted from the boundaries, as in SpanBERT's program."""
PLACE_SIZE = 200
"""Size of the embedding of an id's position in its span, as in SpanBERT's program."""


class SpanSlots(NamedTuple):
    """Boundaries of the span of each of a batch's M masked positions (slots), and the slot's place in the
    span.

    lefts: row of the left boundary among the batch's tokens.
    rights: row of the right boundary among the batch's tokens.
    places: position of the slot in its span, from 0.
    weights: 1.0 if the slot is in a span with boundaries and among the span's first PLACES ids. Otherwise
        0.0, and the other values have no meaning.
    """

    lefts: Tensor
    rights: Tensor
    places: Tensor
    weights: Tensor


def find_span_slots(batch: Batch) -> SpanSlots:
    """Find the span of each masked slot, from the boundaries in the batch's targets.

    The shapes depend only on the batch's shapes, so that devices can compile this function. The span of a
    slot is the last span that begins at or before the slot's row. This is correct because boundaries ascend
    within a sequence, and sequences follow one another.
    """
    tokens, slots = batch.input_ids.numel(), batch.masked().long()
    in_use = batch.masked_lm_weights.reshape(-1) > 0
    lefts, rights = _find_boundary_rows(batch, tokens)
    # Number the spans from 1 and write each number at its left boundary's row. A running maximum then gives
    # for each row the last span begun so far. Unused spans write to the extra row `tokens`, which is reset.
    # rows      0 1 2 3 4 5 6 7
    # begun     0 1 0 0 0 2 0 0   (left boundaries at rows 1 and 5)
    # cummax    0 1 1 1 1 2 2 2
    numbers = torch.arange(1, len(lefts) + 1, device=lefts.device)
    begun = torch.zeros(tokens + 1, dtype=torch.long, device=lefts.device).scatter(0, lefts, numbers)
    begun[tokens] = 0  # the extra entry collects unused spans, which do not count
    span = begun[:tokens].cummax(0).values.index_select(0, slots)
    lefts, rights = (rows.index_select(0, (span - 1).clamp(min=0)) for rows in (lefts, rights))
    is_inside = in_use & (span > 0) & (slots <= rights)
    # If boundaries are external, a boundary is the unmasked id before the span, and the next id has place 0.
    # If they are internal, it is the span's first id, which is itself masked and has place 0. Therefore
    # is_masked is added.
    is_masked = torch.zeros(tokens + 1, dtype=torch.long, device=lefts.device)
    is_masked.scatter_(0, slots.where(in_use, torch.full_like(slots, tokens)), 1)
    places = slots - lefts - 1 + is_masked.index_select(0, lefts.clamp(max=tokens - 1))
    last = tokens - 1
    return SpanSlots(
        lefts=lefts.clamp(max=last),
        rights=rights.clamp(max=last),
        places=places.clamp(0, PLACES - 1),
        weights=(is_inside & (places < PLACES)).float(),
    )


def _find_boundary_rows(batch: Batch, tokens: int) -> tuple[Tensor, Tensor]:
    """Return the rows of the left boundaries and of the right boundaries of all spans.

    Unused entries have the row ``tokens``, which is one after the last token.
    tokens: number of tokens in the batch.
    """
    starts, counts = batch.starts().long(), batch.targets["span_ends"].reshape(-1)
    found = []
    for name in ("left_boundaries", "right_boundaries"):
        places = batch.targets[name].long().reshape(len(counts), -1)
        is_used = torch.arange(places.shape[1], device=places.device) < counts[:, None]
        found.append((starts[:, None] + places).where(is_used, torch.full_like(places, tokens)).reshape(-1))
    return found[0], found[1]


class BoundaryHead(nn.Module):
    """Two layers that predict a masked word from the boundaries of its span and its position in the span.

    Their output goes to the output layer for masked words, whose weights are the word embeddings.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.places = nn.Embedding(PLACES, PLACE_SIZE)
        self.first = NormedDense(2 * config.hidden_size + PLACE_SIZE, config)
        self.second = NormedDense(config.hidden_size, config)
        self.activation = ACTIVATIONS[config.hidden_act]

    def forward(self, rows: Tensor, slots: SpanSlots) -> Tensor:
        """Return the vectors of the masked slots, with shape (M, hidden).

        rows: the encoder's vectors of all tokens.
        """
        of_places = self.places(slots.places)
        ends = [rows.index_select(0, slots.lefts), rows.index_select(0, slots.rights)]
        found = torch.cat([*ends, of_places.to(rows.dtype)], -1)
        for layer in (self.first, self.second):
            found = layer.LayerNorm(self.activation(layer.dense(found)))
        return found


@dataclass(frozen=True, slots=True)
class SpanLogits(Logits):
    """Logits of both heads. In shapes, M is the number of masked slots and V the padded vocabulary size."""

    boundary: Tensor  # (M, V)
    boundary_weights: Tensor  # (M,) float32


class BertForSpanBoundaries(BertForMaskedLM):
    """The encoder with a head for masked words and a head for span boundaries. The weights are random."""

    def __init__(self, config: ModelConfig, attention: FlatAttention = attend_with_pytorch) -> None:
        super().__init__(config, attention)
        self.boundary = BoundaryHead(config)
        self.draw_weights()

    def forward(self, batch: Batch, carried: LayerOutput | None = None) -> SpanLogits:
        """Return the logits of both heads for all masked slots, whether they are used or not.

        carried: output of the previous pipeline stage. None if the model starts at the embeddings.
        """
        rows = self.bert.encode_seeded(batch, carried).normed
        slots = find_span_slots(batch)
        return SpanLogits(
            masked_lm=self.guess_words(batch, rows),
            next_sentence=None,
            boundary=self.cls.predictions.logits(self.boundary(rows, slots), self.output_words()),
            boundary_weights=slots.weights,
        )


class SpanBoundaries(MaskedWords):
    """Task that learns masked words, and learns to predict the same words from the boundaries of their spans.

    The loss is the sum of the two mean losses.
    """

    name = "span_boundaries"
    model_class = BertForSpanBoundaries
    metrics = ("mlm_loss", "mlm_accuracy", "boundary_loss", "boundary_accuracy")
    columns = make_columns(metrics, "boundary")

    def outcome(self, model: TaskModel, batch: Batch) -> Outcome:
        logits = model(batch)
        of_words, sums = compute_words_loss(logits, batch, self._row_losses)
        losses = self._row_losses(logits.boundary, batch.masked_lm_ids.reshape(-1).long())
        of_boundaries, more = average_and_sum(*losses, logits.boundary_weights)
        return Outcome(of_words + of_boundaries, torch.stack([*sums, *more]))

    def evaluation(
        self, data: OpenedDataset, survey: Any, training: OpenedDataset | None
    ) -> "SpanBoundaryEvaluation":
        return SpanBoundaryEvaluation(data, survey, "training" if training else "evaluation")


class SpanBoundaryEvaluation(PretrainingEvaluation):
    """Evaluation of both heads: the accuracy and the loss of masked words with each head, and baselines.

    The baselines do not read the text. They are those of ``PretrainingEvaluation``.
    """

    def __init__(self, data: OpenedDataset, survey: Mapping[str, Any], source: str) -> None:
        super().__init__(data, survey, source)
        self.metrics = (*self.metrics, "guess_boundary_accuracy", "guess_boundary_loss")

    def host_sums(self, batch: Batch) -> Tensor:
        ids, weights = batch.masked_lm_ids.reshape(-1), find_span_slots(batch).weights
        of_boundaries = sum_guess_metrics(ids, weights, self._labels.words, self._word_losses)
        return torch.cat([super().host_sums(batch), torch.stack(of_boundaries)])

    def results(self, totals: MetricTotals, kept: Sequence[Any]) -> dict[str, float]:
        found = super().results(totals, kept)
        for name, (total, weight) in totals.items():
            if "boundary" in name:
                found[name] = total / max(weight, 1e-5)
        return found | {"loss": found["loss"] + found["boundary_loss"]}

    def describe(self, results: Mapping[str, float]) -> str:
        of_boundaries = (
            "boundary_accuracy {boundary_accuracy:.5f} (always {guess}: {guess_boundary_accuracy:.5f}), "
            "boundary_loss {boundary_loss:.4f} (by frequency{of_set}: {guess_boundary_loss:.4f})"
        ).format(guess=self._guess, of_set=self._of_set, **results)
        return f"{super().describe(results)}, {of_boundaries}"
