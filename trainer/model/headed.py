"""An encoder with the heads of pre-training."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertdata.examples.columns import Array
from trainer.config.model import ModelConfig
from trainer.data.batches import Batch, FlatAttention
from trainer.model.bert import PASSES, Bert, attend_anywhere
from trainer.model.layers import ACTIVATIONS, Carried, NormedDense
from trainer.plugins import find


class HeadedBert(nn.Module):
    """An encoder, named ``bert``, to which a task adds its heads.

    Its forward pass takes a batch, and what the layer before the first one hands on (``Bert.forward``).
    ties_words: it has the masked-word head, whose weights are the word embeddings.
    """

    ties_words = False

    def __init__(
        self, config: ModelConfig, pools: bool = True, attention: FlatAttention = attend_anywhere
    ) -> None:
        super().__init__()
        self.config = config
        self.bert: Bert = find("encoder", config.encoder_name)(config, pools, attention)

    def count_weights(self) -> int:
        """Number of trained values, those of the heads and of the vocabulary's padding included."""
        return sum(weight.numel() for weight in self.parameters())

    def draw_weights(self) -> None:
        """Draw all weights from torch's generator. Nothing is drawn for the meta device."""
        weights = dict(self.named_parameters())
        if not any(weight.is_meta for weight in weights.values()):
            for name, values in self.first_weights():
                weights[name].detach().copy_(values)

    def first_weights(self) -> Iterator[tuple[str, Tensor]]:
        """Name and first values of each weight, one at a time in host memory, in the order of the modules.

        They are drawn from torch's generator, the same whichever device the model is on.
        """
        for path, module in self.named_modules():
            for name, weight in module.named_parameters(recurse=False):
                values = torch.zeros(weight.shape)
                if name == "weight" and isinstance(module, nn.LayerNorm):
                    values.fill_(1.0)
                elif name == "weight":
                    self.bert.draw(values, path, self.config)
                if name == "weight" and path.endswith(("word_embeddings", "predictions.decoder")):
                    values[self.config.vocab_size :] = 0.0
                yield f"{path}.{name}", values


@dataclass(frozen=True, slots=True)
class Logits:
    """The output of the heads. M: masked slots. V: the padded vocabulary."""

    masked_lm: Tensor  # (M, V); minus infinity for padding of the vocabulary, unless it takes part
    next_sentence: Tensor | None  # (B, 2); None: the model has no such head


class Predictions(nn.Module):
    """The masked-word head. Its weights are the word embeddings, an argument of each call, or its decoder's.

    transform, bias: None for a model without them. decoder: None where the weights are the embeddings.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.transform = NormedDense(width, config, config.has_biases) if config.use_cls_layer else None
        has_bias = config.use_prediction_bias
        self.bias = nn.Parameter(torch.zeros(config.padded_vocab_size)) if has_bias else None
        self.decoder: nn.Linear | None = None
        if not config.tie_word_embeddings:
            self.decoder = nn.Linear(width, config.padded_vocab_size, bias=False)
        self.vocab_size = config.vocab_size
        self.activation = ACTIVATIONS[config.hidden_act]
        # Devices may replace this large product by their own.
        self.project: Callable[[Tensor, Tensor, Tensor], Tensor] = F.linear

    def take_padding(self) -> None:
        """Let the rows that pad the vocabulary to a multiple of 8 take part in the softmax from now on."""
        self.vocab_size = -(-self.vocab_size // 8) * 8

    def forward(self, rows: Tensor, words: Tensor | None) -> Tensor:
        """The logits of these vectors. words: the word embeddings; None for a model with a decoder."""
        if self.transform is not None:
            rows = self.transform.LayerNorm(self.activation(self.transform.dense(rows)))
        return self.logits(rows, words)

    def logits(self, rows: Tensor, words: Tensor | None) -> Tensor:
        """The product with the output layer's weights. Minus infinity for padding of the vocabulary."""
        if self.decoder is not None:
            words = self.decoder.weight
        assert words is not None, "the head of a model without a decoder needs the word embeddings"
        bias = words.new_zeros(self.vocab_size) if self.bias is None else self.bias[: self.vocab_size]
        padding = (0, len(words) - self.vocab_size)
        return self.project(rows, words, F.pad(bias, padding, value=-math.inf))


class BertForMaskedLM(HeadedBert):
    """The encoder with the masked-word head, and random weights. Without the other head, it has no pooler."""

    pairs = False  # it has the next-sentence head

    def __init__(self, config: ModelConfig, attention: FlatAttention = attend_anywhere) -> None:
        super().__init__(config, pools=self.pairs, attention=attention)
        self.ties_words = config.tie_word_embeddings
        self.cls: Any = nn.ModuleDict({"predictions": Predictions(config)})
        if self.pairs:
            self.cls["seq_relationship"] = nn.Linear(config.hidden_size, 2)
        self.draw_weights()

    def forward(self, batch: Batch, carried: Carried | None = None) -> Logits:
        """Logits of all masked slots, used or not, and of all next-sentence pairs, where they are learned."""
        if not self.pairs:
            return Logits(self.guess_words(batch, self.bert.encode(batch, carried).normed), None)
        rows, pooled = self.bert(batch, carried)
        return Logits(self.guess_words(batch, rows), self.cls.seq_relationship(pooled))

    def guess_words(self, batch: Batch, rows: Tensor) -> Tensor:
        """The logits of the masked slots, from the vectors of all tokens."""
        logits: Tensor = self.cls.predictions(rows.index_select(0, batch.masked()), self.output_words())
        return logits

    def output_words(self) -> Tensor | None:
        """The word embeddings, where the output layer uses them."""
        words: Tensor | None = self.bert.embeddings.word_embeddings.weight if self.ties_words else None
        return words


class BertForPreTraining(BertForMaskedLM):
    """The encoder with both heads, and random weights."""

    pairs = True


class Counted(NamedTuple):
    """Real tokens of micro-batches, the operations of their matrix products, and tokens with padding."""

    tokens: int
    operations: float
    slots: int


def count(batches: Sequence[Batch], shape: ModelConfig) -> Counted:
    """The tokens and operations of micro-batches in host memory, forward and backward."""
    tokens = operations = slots = 0
    for batch in batches:
        lengths = batch.lengths()
        masks = int(np.count_nonzero(batch.masked_lm_weights.numpy()))
        tokens += int(lengths.sum())
        operations += forward_operations(lengths, masks, shape)
        slots += batch.input_ids.numel()
    return Counted(tokens, PASSES * operations, slots)


def forward_operations(lengths: Array, masks: int, shape: ModelConfig) -> int:
    """Operations of one forward pass: two for each multiplication with an addition.

    lengths: int64. masks: positions at which the masked-word head computes logits. The heads are those of
    pre-training; those of other tasks are smaller than a thousandth of the whole.
    """
    width, sequences = shape.hidden_size, int(np.count_nonzero(lengths))
    heads = masks * width * (width + shape.vocab_size) + sequences * width * (width + 2)
    operations: int = 2 * (find("encoder", shape.encoder_name).operations(lengths, shape) + heads)
    return operations
