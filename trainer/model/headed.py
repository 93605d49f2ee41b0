"""An encoder with the heads of pre-training, and the counting of a batch's tokens and operations."""

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
from trainer.model.layers import ACTIVATIONS, LayerOutput, NormedDense
from trainer.plugins import find


class HeadedBert(nn.Module):
    """An encoder, named ``bert``, to which a task adds its heads.

    Its forward pass takes a batch, and the output of the layer before its first one (see ``Bert.forward``).
    ties_words: it has a masked-word head that uses the word embeddings as weights.
    """

    ties_words = False

    def __init__(
        self, config: ModelConfig, pools: bool = True, attention: FlatAttention = attend_anywhere
    ) -> None:
        super().__init__()
        self.config = config
        self.bert: Bert = find("encoder", config.encoder_name)(config, pools, attention)

    def count_weights(self) -> int:
        """Return the number of trained values, including heads and padding of the vocabulary."""
        return sum(weight.numel() for weight in self.parameters())

    def draw_weights(self) -> None:
        """Draw all weights from torch's generator. Does nothing on the meta device."""
        weights = dict(self.named_parameters())
        if not any(weight.is_meta for weight in weights.values()):
            for name, values in self.first_weights():
                weights[name].detach().copy_(values)

    def first_weights(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the name and first values of each weight, in the order of the modules.

        They are drawn from torch's generator in host memory, one weight at a time. So they are the same
        whichever device the model is on.
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
    """The logits that the heads of pre-training compute.

    M is the number of masked slots, V the size of the vocabulary with its padding.
    """

    # (M, V). The rows that pad the vocabulary have minus infinity, unless the softmax includes them
    masked_lm: Tensor
    next_sentence: Tensor | None  # (B, 2), or None if the model has no such head


class MaskedWordHead(nn.Module):
    """Head that predicts masked words: a transform, then a product with output weights, one row per word.

    The output weights are the word embeddings, passed at each call, or the weights of a separate decoder.
    transform, bias: None if the model has none. decoder: None if the word embeddings are used.
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
        # A method of its own, so that devices can replace this large product.
        self.project: Callable[[Tensor, Tensor, Tensor], Tensor] = F.linear

    def take_padding(self) -> None:
        """From now on, let the softmax include the rows that pad the vocabulary to a multiple of 8."""
        self.vocab_size = -(-self.vocab_size // 8) * 8

    def forward(self, rows: Tensor, words: Tensor | None) -> Tensor:
        """Return the logits for these vectors. words: the word embeddings, or None if there is a decoder."""
        if self.transform is not None:
            rows = self.transform.LayerNorm(self.activation(self.transform.dense(rows)))
        return self.logits(rows, words)

    def logits(self, rows: Tensor, words: Tensor | None) -> Tensor:
        """Return the product with the output weights. Padding of the vocabulary gets minus infinity."""
        if self.decoder is not None:
            words = self.decoder.weight
        assert words is not None, "the head of a model without a decoder needs the word embeddings"
        bias = words.new_zeros(self.vocab_size) if self.bias is None else self.bias[: self.vocab_size]
        padding = (0, len(words) - self.vocab_size)
        return self.project(rows, words, F.pad(bias, padding, value=-math.inf))


class BertForMaskedLM(HeadedBert):
    """The encoder with the masked-word head and random weights. It has no pooler."""

    pairs = False  # whether the model has the head that says if two texts follow each other

    def __init__(self, config: ModelConfig, attention: FlatAttention = attend_anywhere) -> None:
        super().__init__(config, pools=self.pairs, attention=attention)
        self.ties_words = config.tie_word_embeddings
        self.cls: Any = nn.ModuleDict({"predictions": MaskedWordHead(config)})
        if self.pairs:
            self.cls["seq_relationship"] = nn.Linear(config.hidden_size, 2)
        self.draw_weights()

    def forward(self, batch: Batch, carried: LayerOutput | None = None) -> Logits:
        """Return logits of all masked slots, used or not, and of next sentence if the model has that head."""
        if not self.pairs:
            return Logits(self.guess_words(batch, self.bert.encode(batch, carried).normed), None)
        rows, pooled = self.bert(batch, carried)
        return Logits(self.guess_words(batch, rows), self.cls.seq_relationship(pooled))

    def guess_words(self, batch: Batch, rows: Tensor) -> Tensor:
        """Return the logits of the masked slots. rows: vectors of all tokens."""
        logits: Tensor = self.cls.predictions(rows.index_select(0, batch.masked()), self.output_words())
        return logits

    def output_words(self) -> Tensor | None:
        """Return the word embeddings if the output layer uses them, otherwise None."""
        words: Tensor | None = self.bert.embeddings.word_embeddings.weight if self.ties_words else None
        return words


class BertForPreTraining(BertForMaskedLM):
    """The encoder with both heads, and random weights."""

    pairs = True


class OperationCounts(NamedTuple):
    """Counts of tokens and operations, summed over micro-batches.

    tokens: tokens without padding. operations: operations of their matrix products. slots: tokens with
    padding.
    """

    tokens: int
    operations: float
    slots: int


def count_operations(batches: Sequence[Batch], shape: ModelConfig) -> OperationCounts:
    """Count tokens and operations, forward and backward, of micro-batches in host memory."""
    tokens = operations = slots = 0
    for batch in batches:
        lengths = batch.lengths()
        masks = int(np.count_nonzero(batch.masked_lm_weights.numpy()))
        tokens += int(lengths.sum())
        operations += count_forward_operations(lengths, masks, shape)
        slots += batch.input_ids.numel()
    return OperationCounts(tokens, PASSES * operations, slots)


def count_forward_operations(lengths: Array, masks: int, shape: ModelConfig) -> int:
    """Return the operations of a forward pass. A multiply-add counts as two.

    lengths: int64, tokens of each sequence. masks: positions for which the masked-word head computes logits.
    The heads are those of pre-training. Other tasks have heads with less than a thousandth of the operations.
    """
    width, sequences = shape.hidden_size, int(np.count_nonzero(lengths))
    heads = masks * width * (width + shape.vocab_size) + sequences * width * (width + 2)
    operations: int = 2 * (find("encoder", shape.encoder_name).operations(lengths, shape) + heads)
    return operations
