"""SpanBERT's model: masked words, and a span's words from its two boundaries (Joshi et al. 2020)."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from trainer.config.model import ModelConfig
from trainer.data.batches import Batch
from trainer.model.bert import BertForMaskedLM, Logits
from trainer.model.layers import ACTIVATIONS, Carried, NormedDense

PLACES = 15
"""Ids of a span that are predicted from its boundaries: the first ones, as in SpanBERT's program."""
PLACE_SIZE = 200
"""Size of the embedding of an id's place in its span, as in that program."""


class SpanSlots(NamedTuple):
    """For each masked slot (M,): the rows of its span's boundaries, its place in the span from 0 on.

    weights: 1.0 for a slot whose span has boundaries and which is one of its first PLACES; else 0.0, and the
    other values mean nothing.
    """

    lefts: Tensor
    rights: Tensor
    places: Tensor
    weights: Tensor


def span_slots(batch: Batch) -> SpanSlots:
    """The span of each masked slot, by the boundaries among the batch's targets.

    Shapes depend on the batch's alone. The boundaries of each sequence ascend, and rows of sequences follow
    one another, so that a slot's span is the last one that begins at or before its row.
    """
    tokens, slots = batch.input_ids.numel(), batch.masked().long()
    in_use = batch.masked_lm_weights.reshape(-1) > 0
    lefts, rights = _boundary_rows(batch, tokens)
    numbers = torch.arange(1, len(lefts) + 1, device=lefts.device)
    begun = torch.zeros(tokens + 1, dtype=torch.long, device=lefts.device).scatter(0, lefts, numbers)
    begun[tokens] = 0  # what is not used was put there
    span = begun[:tokens].cummax(0).values.index_select(0, slots)
    lefts, rights = (rows.index_select(0, (span - 1).clamp(min=0)) for rows in (lefts, rights))
    is_inside = in_use & (span > 0) & (slots <= rights)
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


def _boundary_rows(batch: Batch, tokens: int) -> tuple[Tensor, Tensor]:
    """The rows of the left and right boundaries of all slots of spans: ``tokens`` for unused ones."""
    starts, counts = batch.starts().long(), batch.targets["span_ends"].reshape(-1)
    found = []
    for name in ("left_boundaries", "right_boundaries"):
        places = batch.targets[name].long().reshape(len(counts), -1)
        is_used = torch.arange(places.shape[1], device=places.device) < counts[:, None]
        found.append((starts[:, None] + places).where(is_used, torch.full_like(places, tokens)).reshape(-1))
    return found[0], found[1]


class BoundaryHead(nn.Module):
    """Two layers on the vectors at a span's boundaries and the place of an id in it.

    Their output goes to the output layer of masked words, whose weights are the word embeddings.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.places = nn.Embedding(PLACES, PLACE_SIZE)
        self.first = NormedDense(2 * config.hidden_size + PLACE_SIZE, config)
        self.second = NormedDense(config.hidden_size, config)
        self.activation = ACTIVATIONS[config.hidden_act]

    def forward(self, rows: Tensor, slots: SpanSlots) -> Tensor:
        """(M, hidden) vectors of the masked slots. rows: the encoder's vectors of all tokens."""
        of_places = self.places(slots.places)
        ends = [rows.index_select(0, slots.lefts), rows.index_select(0, slots.rights)]
        found = torch.cat([*ends, of_places.to(rows.dtype)], -1)
        for layer in (self.first, self.second):
            found = layer.LayerNorm(self.activation(layer.dense(found)))
        return found


@dataclass(frozen=True, slots=True)
class SpanLogits(Logits):
    """The output of both heads. M: masked slots. V: the padded vocabulary."""

    boundary: Tensor  # (M, V)
    boundary_weights: Tensor  # (M,) float32


class BertForSpanBoundaries(BertForMaskedLM):
    """The encoder with the heads of masked words and of boundaries, and random weights."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.boundary = BoundaryHead(config)
        self.draw_weights()

    def forward(self, batch: Batch, carried: Carried | None = None) -> SpanLogits:
        """Logits of all masked slots, used or not, by both heads."""
        rows = self.bert.encode(batch, carried).normed
        of_words, slots = self._logits(batch, rows), span_slots(batch)
        words = self.bert.embeddings.word_embeddings.weight
        return SpanLogits(
            masked_lm=of_words.masked_lm,
            next_sentence=None,
            boundary=self.cls.predictions.logits(self.boundary(rows, slots), words),
            boundary_weights=slots.weights,
        )
