"""The heads of pre-training: masked words and next sentence."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.config.model import ModelConfig
from trainer.model.activations import ACTIVATIONS
from trainer.model.layers import NormedDense


@dataclass(frozen=True, slots=True)
class Logits:
    """The output of the heads, and the labels of its rows; M masked slots, V the padded vocabulary."""

    masked_lm: Tensor  # (M, V); minus infinity for padding of the vocabulary
    next_sentence: Tensor  # (B, 2)
    masked_lm_ids: Tensor  # (M,) int64
    masked_lm_weights: Tensor  # (M,) float32


class Predictions(nn.Module):
    """The masked-word head; its weights are the word embeddings, an argument of each call.

    transform, bias: None for a model without them.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.transform = NormedDense(config.hidden_size, config) if config.use_cls_layer else None
        has_bias = config.use_prediction_bias
        self.bias = nn.Parameter(torch.zeros(config.padded_vocab_size)) if has_bias else None
        self.vocab_size = config.vocab_size
        self.activation = ACTIVATIONS[config.hidden_act]
        # Devices may replace this large product by their own.
        self.project: Callable[[Tensor, Tensor, Tensor], Tensor] = F.linear

    def forward(self, rows: Tensor, words: Tensor) -> Tensor:
        if self.transform is not None:
            rows = self.transform.LayerNorm(self.activation(self.transform.dense(rows)))
        bias = words.new_zeros(self.vocab_size) if self.bias is None else self.bias[: self.vocab_size]
        padding = (0, len(words) - self.vocab_size)
        return self.project(rows, words, F.pad(bias, padding, value=-math.inf))


class Heads(nn.Module):
    """The masked-word head and the next-sentence head."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.predictions = Predictions(config)
        self.seq_relationship = nn.Linear(config.hidden_size, 2)
