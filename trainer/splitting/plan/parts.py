"""The parts of a model that a plan divides among stages: the embeddings, each layer, and the heads.

Each part can be run alone, to measure its time or memory.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.config.model import ModelConfig
from trainer.config.model_kinds import read_model_config
from trainer.config.modernbert import ModernBertConfig
from trainer.data.batches import FlatAttention, Sequences
from trainer.devices.counting import host_attention
from trainer.devices.window_blocks import count_scored_pairs
from trainer.model.headed import BertForMaskedLM, Logits, MaskedWordHead
from trainer.model.layers import Dense
from trainer.plugins import find
from trainer.splitting.plan.plan import BOTH, SMALL, WORDS, Plan
from trainer.splitting.plan.request import PlanRequest
from trainer.tasks.choice import find_task_class
from trainer.tasks.pretraining import compute_pretraining_loss

Tensors = tuple[Tensor, ...]
"""Tensors that a part passes to the next part, each of shape (tokens, hidden).

In models that have their norms before the layers, there is a second tensor, which is the
first one after the norm.
"""

LAYER, LOCAL = "layer", "local layer"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """The shape of a micro-batch.

    masked: number of masked positions per row.
    attention: how attention is computed: "fused", "scores" or "flat" (explained in ``PlanRequest``).
    flat_attention: attention function for flat batches, in which sequences follow one
        another without padding.
    """

    rows: int
    length: int
    masked: int  # masked positions per row
    attention: str
    flat_attention: FlatAttention = host_attention


def make_shape(request: PlanRequest, rows: int, flat_attention: FlatAttention = host_attention) -> Shape:
    """Return the shape of micro-batches with ``rows`` rows, for a request."""
    return Shape(
        rows=rows,
        length=request.sequence_length,
        masked=request.masked_slots,
        attention=request.attention,
        flat_attention=flat_attention,
    )


class ModelPart(nn.Module):
    """A part of the model that can make random input for itself.

    ``forward`` takes the output of the previous part.

    takes: number of input tensors of ``forward``.
    seen: average number of tokens that a token attends to.
    words: the word embeddings, if this part shares them with the embeddings part. Otherwise None.
    """

    takes = 1

    def __init__(self, config: ModelConfig, shape: Shape) -> None:
        super().__init__()
        self._size = (shape.rows * shape.length, config.hidden_size)
        self.seen: float = shape.length
        self.words: nn.Parameter | None = None

    def make_input(self, dtype: torch.dtype) -> Tensors:
        """Return random tensors with the shapes of the previous part's output.

        dtype: type of the tensors.
        """
        return tuple(torch.randn(self._size, dtype=dtype) for _ in range(self.takes))


class EmbeddingsPart(ModelPart):
    """The embeddings with their norm and dropout."""

    takes = 0

    def __init__(self, config: ModelConfig, shape: Shape) -> None:
        super().__init__(config, shape)
        self.embeddings: Any = find("encoder", config.encoder_name).embeddings_class(config)
        self._config = config
        tokens = torch.arange(shape.rows * shape.length, dtype=torch.int32)
        # Make nearly all ids different. Equal ids would be read from a cache, so a lookup would be too fast.
        self._words = tokens % config.vocab_size
        self._positions, self._types = tokens % shape.length, torch.zeros_like(tokens)

    def forward(self, *given: Tensor) -> Tensors:
        if isinstance(self._config, ModernBertConfig):
            rows = self.embeddings(self._words)
            return rows, rows
        rows = self.embeddings(self._words, self._types, self._positions)
        dropout = self._config.hidden_dropout_prob
        if self._config.megatron_residual_connection:
            rows = F.dropout(rows, dropout, self.training)
            return rows, self.embeddings.LayerNorm(rows)
        return (F.dropout(self.embeddings.LayerNorm(rows), dropout, self.training),)


class LayerPart(ModelPart):
    """One layer of the encoder. It takes two tensors in models that have their norms before the layers."""

    def __init__(self, config: ModelConfig, shape: Shape, number: int) -> None:
        super().__init__(config, shape)
        self.layer: Any = find("encoder", config.encoder_name).new_layer(config, number)
        self.takes = 2 if config.megatron_residual_connection else 1
        self._sequences: Any = _sequences(shape)
        if isinstance(config, ModernBertConfig):
            from trainer.model.modernbert import RotarySequences

            positions = torch.arange(shape.length).repeat(shape.rows)
            self._sequences = RotarySequences.of(self._sequences, positions, config)
            if not config.is_global(number):
                self.seen = count_scored_pairs([0, shape.length], config.reach) / shape.length

    def forward(self, *given: Tensor) -> Tensors:
        rows, normed = self.layer(given[0], given[-1], self._sequences)
        return (rows, normed) if self.takes == 2 else (normed,)


def _sequences(shape: Shape) -> Sequences:
    """Return the sequences of a batch, all of full length, with the function for their attention."""
    if shape.attention == "flat":
        ends = torch.arange(shape.rows + 1, dtype=torch.int32) * shape.length
        return Sequences(ends, shape.length, shape.flat_attention)
    from trainer.data.row_batches import PaddedSequences

    return PaddedSequences(torch.ones(shape.rows, shape.length, dtype=torch.int32))


class HeadsPart(ModelPart):
    """Everything above the encoder: pooler, heads and loss.

    For tasks other than pre-training, a small layer with two outputs per token takes the
    place of the task's head.
    head: type of the head: BOTH, WORDS or SMALL.
    """

    def __init__(self, config: ModelConfig, shape: Shape, head: str) -> None:
        super().__init__(config, shape)
        width, first = config.hidden_size, torch.arange(shape.rows) * shape.length
        self.pooler: Any = None if head == WORDS else Dense(width, width)
        self.small: Any = None if head == WORDS else nn.Linear(width, 2)
        self.predictions: Any = None if head == SMALL else MaskedWordHead(config)
        if self.predictions is not None and config.tie_word_embeddings:
            self.words = nn.Parameter(torch.zeros(config.padded_vocab_size, width))
        self._first, self._masked = first, (first[:, None] + torch.arange(shape.masked)).reshape(-1)
        # This object has the fields of a batch that the loss function reads.
        self._batch: Any = SimpleNamespace(
            masked_lm_ids=torch.zeros(len(self._masked), dtype=torch.int64),
            masked_lm_weights=torch.ones(len(self._masked)),
            next_sentence_labels=torch.zeros(shape.rows, dtype=torch.int32),
        )

    def forward(self, *given: Tensor) -> Tensors:
        normed, pooled = given[-1], None
        if self.predictions is None:
            return (self.small(normed).float().logsumexp(-1).mean(),)
        if self.pooler is not None:
            pooled = torch.tanh(self.pooler.dense(normed.index_select(0, self._first)))
        of_words = self.predictions(normed.index_select(0, self._masked), self.words)
        logits = Logits(of_words, None if pooled is None else self.small(pooled))
        return (compute_pretraining_loss(logits, self._batch).loss,)


def make_part(name: str, config: ModelConfig, shape: Shape, head: str) -> ModelPart:
    """Return the part of a model that has this name in ``list_part_names``.

    It is created on torch's default device.

    head: name of the task whose head the model has.
    """
    if name == "embeddings":
        return EmbeddingsPart(config, shape)
    if name in (layers := list_layer_names(config)):
        return LayerPart(config, shape, layers.index(name))
    return HeadsPart(config, shape, find_head(head))


def list_layer_names(config: ModelConfig) -> tuple[str, ...]:
    """Return a name for each layer. Layers that need the same time and memory have the same name."""
    if not isinstance(config, ModernBertConfig):
        return (LAYER,) * config.num_hidden_layers
    return tuple(LAYER if config.is_global(number) else LOCAL for number in range(config.num_hidden_layers))


def list_part_names(config: ModelConfig) -> tuple[str, ...]:
    """Return the names of the model's parts, from the embeddings to the heads.

    A name that several layers share appears only once.
    """
    return ("embeddings", *dict.fromkeys(list_layer_names(config)), "heads")


def find_head(task: str) -> str:
    """Return the type of head that models of this task have: BOTH, WORDS or SMALL."""
    model = find_task_class(task).model_class
    if not issubclass(model, BertForMaskedLM):
        return SMALL
    return BOTH if model.pairs else WORDS


def count_weights(plan: Plan) -> int:
    """Return the number of trained weights of the plan's model, with its head and padded vocabulary."""
    config = read_model_config(plan.model)
    shape = Shape(rows=1, length=1, masked=1, attention="fused")
    with torch.device("meta"):
        layers = [LayerPart(config, shape, number) for number in range(config.num_hidden_layers)]
        parts = [EmbeddingsPart(config, shape), *layers, HeadsPart(config, shape, plan.head or BOTH)]
    return sum(one.numel() for part in parts for one in part.parameters() if one is not part.words)
