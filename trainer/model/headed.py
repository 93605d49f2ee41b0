"""An encoder with the heads (output layers) of pre-training, and the counting of its operations."""

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
from trainer.model.bert import PASSES, Bert, attend_with_pytorch
from trainer.model.layers import ACTIVATIONS, LayerOutput, NormedDense
from trainer.plugins import find


class HeadedBert(nn.Module):
    """Base class of models: an encoder, named ``bert``, to which each task adds its heads (output layers).

    The forward pass takes a batch and, if the model is divided, the output of the previous layer (see
    ``Bert.forward``).
    ties_words: True if a masked-word head uses the word embeddings as its output weights.
    """

    ties_words = False

    def __init__(
        self, config: ModelConfig, pools: bool = True, attention: FlatAttention = attend_with_pytorch
    ) -> None:
        super().__init__()
        self.config = config
        self.bert: Bert = find("encoder", config.encoder_name)(config, pools, attention)

    def count_weights(self) -> int:
        """Return the number of trained parameters, including heads and the vocabulary's padding."""
        return sum(weight.numel() for weight in self.parameters())

    def draw_weights(self) -> None:
        """Initialise all weights from torch's random generator. On the meta device, do nothing."""
        weights = dict(self.named_parameters())
        if not any(weight.is_meta for weight in weights.values()):
            for name, values in self.first_weights():
                weights[name].detach().copy_(values)

    def first_weights(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the name and the initial value of each weight, in the order of the modules.

        The values are drawn from torch's random generator in host memory, one weight at a time, so they do
        not depend on the model's device.
        """
        for path, module in self.named_modules():
            for name, weight in module.named_parameters(recurse=False):
                values = torch.zeros(weight.shape)
                if name == "weight" and isinstance(module, nn.LayerNorm):
                    values.fill_(1.0)
                elif name == "weight":
                    self.bert.initialise(values, path, self.config)
                if name == "weight" and path.endswith(("word_embeddings", "predictions.decoder")):
                    values[self.config.vocab_size :] = 0.0
                yield f"{path}.{name}", values


@dataclass(frozen=True, slots=True)
class Logits:
    """The logits (scores before the softmax) that the heads of pre-training compute.

    M is the number of masked slots, and V the size of the vocabulary with its padding.
    """

    # (M, V). Entries for the vocabulary's padding are minus infinity, unless the softmax includes the
    # padding.
    masked_lm: Tensor
    next_sentence: Tensor | None  # (B, 2), or None if the model has no such head


class MaskedWordHead(nn.Module):
    """Head that predicts masked words: a transform, then a product with output weights that have a row per
    word.

    The output weights are the word embeddings, which are passed at each call, or the weights of a separate
    decoder.
    transform, bias: None if the model does not have them.
    decoder: None if the word embeddings are used.
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
        # A replaceable attribute, because some devices compute this large product in another way.
        self.project: Callable[[Tensor, Tensor, Tensor], Tensor] = F.linear

    def include_padding(self) -> None:
        """Let the softmax include, from now on, the entries that pad the vocabulary to a multiple of 8."""
        self.vocab_size = -(-self.vocab_size // 8) * 8

    def forward(self, rows: Tensor, words: Tensor | None) -> Tensor:
        """Return the logits for vectors of tokens.

        rows: the vectors, shape (M, hidden).
        words: the word embeddings, or None if there is a decoder.
        """
        if self.transform is not None:
            rows = self.transform.LayerNorm(self.activation(self.transform.dense(rows)))
        return self.logits(rows, words)

    def logits(self, rows: Tensor, words: Tensor | None) -> Tensor:
        """Multiply by the output weights. The logits of the vocabulary's padding become minus infinity.

        rows: output of the transform.
        words: the word embeddings, or None if there is a decoder.
        """
        if self.decoder is not None:
            words = self.decoder.weight
        assert words is not None, "the head of a model without a decoder needs the word embeddings"
        bias = words.new_zeros(self.vocab_size) if self.bias is None else self.bias[: self.vocab_size]
        padding = (0, len(words) - self.vocab_size)
        return self.project(rows, words, F.pad(bias, padding, value=-math.inf))


class BertForMaskedLM(HeadedBert):
    """The encoder with the masked-word head. It has no pooler."""

    pairs = False  # True if the model has the head that says whether two texts follow each other

    def __init__(self, config: ModelConfig, attention: FlatAttention = attend_with_pytorch) -> None:
        super().__init__(config, pools=self.pairs, attention=attention)
        self.ties_words = config.tie_word_embeddings
        self.cls: Any = nn.ModuleDict({"predictions": MaskedWordHead(config)})
        if self.pairs:
            self.cls["seq_relationship"] = nn.Linear(config.hidden_size, 2)
        self.draw_weights()

    def forward(self, batch: Batch, carried: LayerOutput | None = None) -> Logits:
        """Return the logits of all masked slots (unused ones too) and, if the model has that head, of next
        sentence.
        """
        if not self.pairs:
            return Logits(self.guess_words(batch, self.bert.encode_seeded(batch, carried).normed), None)
        rows, pooled = self.bert(batch, carried)
        return Logits(self.guess_words(batch, rows), self.cls.seq_relationship(pooled))

    def guess_words(self, batch: Batch, rows: Tensor) -> Tensor:
        """Return the logits of the masked slots.

        rows: vectors of all tokens of the batch.
        """
        logits: Tensor = self.cls.predictions(rows.index_select(0, batch.masked()), self.output_words())
        return logits

    def output_words(self) -> Tensor | None:
        """Return the word embeddings if they are also the output weights, otherwise None."""
        words: Tensor | None = self.bert.embeddings.word_embeddings.weight if self.ties_words else None
        return words


class BertForPreTraining(BertForMaskedLM):
    """The encoder with the heads for masked words and next sentence, as BERT is pre-trained."""

    pairs = True


class OperationCounts(NamedTuple):
    """Numbers of tokens and operations, summed over micro-batches.

    tokens: number of tokens without padding.
    operations: operations of the matrix products for these tokens.
    slots: number of tokens with padding.
    """

    tokens: int
    operations: float
    slots: int


def count_operations(batches: Sequence[Batch], shape: ModelConfig) -> OperationCounts:
    """Count the tokens and the operations of forward and backward pass for micro-batches in host memory."""
    tokens = operations = slots = 0
    for batch in batches:
        lengths = batch.lengths()
        masks = int(np.count_nonzero(batch.masked_lm_weights.numpy()))
        tokens += int(lengths.sum())
        operations += count_forward_operations(lengths, masks, shape)
        slots += batch.input_ids.numel()
    return OperationCounts(tokens, PASSES * operations, slots)


def count_forward_operations(lengths: Array, masks: int, shape: ModelConfig) -> int:
    """Return the operations of a forward pass. A multiplication with addition counts as two.

    The heads are counted as those of pre-training. Heads of other tasks need less than a thousandth of the
    operations.
    lengths: number of tokens of each sequence, int64.
    masks: number of positions for which the masked-word head computes logits.
    """
    width, sequences = shape.hidden_size, int(np.count_nonzero(lengths))
    heads = masks * width * (width + shape.vocab_size) + sequences * width * (width + 2)
    operations: int = 2 * (find("encoder", shape.encoder_name).operations(lengths, shape) + heads)
    return operations
