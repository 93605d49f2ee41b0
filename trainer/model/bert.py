"""BERT with its two heads: masked words and next sentence (Devlin et al. 2018).

Sequences come flat, one after another, so that every product is one of real tokens; or in padded rows, for
devices that need them. The masked-word head is computed for masked slots only. The operations of a batch are
counted at the end.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from bertdata.examples.columns import Array
from trainer.config.model import ModelConfig
from trainer.config.section import check
from trainer.data.batches import Batch, FlatAttention
from trainer.model.layers import ACTIVATIONS, Carried, Dense, Embeddings, Layer, NormedDense
from trainer.plugins import find

PASSES = 3.0
"""Operations of forward and backward pass over those of the forward pass."""

WORD_HEAD, PAIR_HEAD = "cls.predictions.", "cls.seq_relationship."
"""Beginnings of the names of the heads' weights: of masked words, of next sentence."""


class Bert(nn.Module):
    """The encoder: from ids to a vector for each token and one for each sequence.

    It may hold some of the layers only, next to one another (``trainer.splitting.pieces``).
    pooler: None for a model whose heads need no vector of a sequence.
    seeds: called with the number of each part before it draws its dropout: 0 the embeddings, 1 the first
    layer, and after the last one the heads; None: nothing is seeded. recomputes: layers keep their input
    alone for the backward pass, which computes the rest again.
    """

    embeddings_class: type[nn.Module] = Embeddings

    def __init__(self, config: ModelConfig, pools: bool = True) -> None:
        super().__init__()
        self.embeddings: Any = self.embeddings_class(config)
        layers = (self.new_layer(config, number) for number in range(config.num_hidden_layers))
        self.encoder: Any = nn.ModuleDict({"layer": nn.ModuleList(layers)})
        self.pooler: Any = Dense(config.hidden_size, config.hidden_size) if pools else None
        self.dropout = config.hidden_dropout_prob
        self.norm_first = config.megatron_residual_connection
        self.longest = config.max_position_embeddings
        self.attention: FlatAttention = attend_anywhere
        self.seeds: Callable[[int], None] | None = None
        self.recomputes = False

    @staticmethod
    def new_layer(config: ModelConfig, number: int) -> nn.Module:
        """The layer of that number, counted from 0."""
        return Layer(config)

    def forward(self, batch: Batch, carried: Carried | None = None) -> tuple[Tensor, Tensor]:
        """(tokens, hidden) vectors of the tokens, (B, hidden) vectors of the sequences.

        carried: of the layer before the first one that is here; None: the embeddings are here.
        """
        normed = self.encode_seeded(batch, carried)
        first = normed.index_select(0, batch.starts())
        return normed, torch.tanh(self.pooler.dense(first))

    def encode_seeded(self, batch: Batch, carried: Carried | None = None) -> Tensor:
        """(tokens, hidden) vectors of the tokens, for heads that draw their dropout next."""
        normed = self.encode(batch, carried).normed
        if self.seeds is not None:
            self.seeds(len(self.encoder.layer) + 1)
        return normed

    def encode(self, batch: Batch, carried: Carried | None = None) -> Carried:
        """The tokens after this model's last layer. carried: as for ``forward``.

        SettingsError for a sequence that is too long.
        """
        length, longest = batch.most_tokens(), self.longest
        check(length <= longest, f"sequences of {length} ids, at most max_position_embeddings ({longest})")
        if carried is None:
            if self.seeds is not None:
                self.seeds(0)
            carried = self.embed(batch)
        sequences = self.sequences(batch)
        run = partial(checkpoint, self._run, use_reentrant=False) if self.recomputes else self._run
        for number in range(len(self.encoder.layer)):
            carried = run(self.seeds, number, carried, sequences)
        return carried

    def _run(
        self, seeds: Callable[[int], None] | None, number: int, carried: Carried, sequences: Any
    ) -> Carried:
        if seeds is not None:
            seeds(number + 1)
        return Carried(*self.encoder.layer[number](*carried, sequences))

    def sequences(self, batch: Batch) -> Any:
        """The batch's sequences as the layers take them."""
        return batch.sequences(self.attention)

    def embed(self, batch: Batch) -> Carried:
        """The tokens before the first layer."""
        types = batch.token_type_ids.reshape(-1)
        if self.embeddings.token_type_embeddings.num_embeddings == 1:  # that of both texts of a pair
            types = torch.zeros_like(types)
        rows = self.embeddings(batch.input_ids.reshape(-1), types, batch.positions())
        if self.norm_first:
            rows = F.dropout(rows, self.dropout, self.training)
            return Carried(rows, self.embeddings.LayerNorm(rows))
        rows = F.dropout(self.embeddings.LayerNorm(rows), self.dropout, self.training)
        return Carried(rows, rows)

    def draw(self, values: Tensor, path: str, config: ModelConfig) -> None:
        """Draw first values: of a product's weight or an embedding, of the model that has this encoder."""
        values.normal_(std=deviation(path, config))

    @staticmethod
    def operations(lengths: Array, shape: ModelConfig) -> int:
        """Products and additions of the layers' forward pass on sequences of these lengths."""
        width, inner = shape.hidden_size, shape.intermediate_size
        layer = int(lengths.sum()) * (4 * width * width + 2 * width * inner)
        return shape.num_hidden_layers * (layer + 2 * width * int(lengths @ lengths))


def deviation(path: str, config: ModelConfig, deep: tuple[str, ...] = ("output.dense",)) -> float:
    """The standard deviation of first values. deep: ends of the paths whose values shrink with the depth."""
    if config.deep_weight_init and path.endswith(deep):
        return config.initializer_range / math.sqrt(2 * config.num_hidden_layers)
    return config.initializer_range


def attend_anywhere(*given: Any) -> Tensor:
    """Attention by PyTorch's own function, for any device."""
    from trainer.model.padded_attention import padded_attention

    return padded_attention(*given)


def host_memory() -> int:
    """Bytes of this machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_memory(parameters: int) -> None:
    """SettingsError where this machine's memory cannot hold a model of so many weights."""
    needed, there = 4 * parameters, host_memory()
    sizes = f"takes {needed / 2**30:,.1f} GiB, this machine has {there / 2**30:,.1f} GiB"
    remedy = "choose a smaller hidden_size, intermediate_size or num_hidden_layers"
    check(needed <= there, f"a model of {parameters:,} parameters {sizes}; {remedy}")


class HeadedBert(nn.Module):
    """An encoder, named ``bert``, to which a task adds its heads.

    Its forward pass takes a batch, and what the layer before the first one hands on (``Bert.forward``).
    ties_words: it has the masked-word head, which uses the word embeddings.
    """

    ties_words = False

    def __init__(self, config: ModelConfig, pools: bool = True) -> None:
        super().__init__()
        self.config = config
        self.bert: Bert = find("encoder", config.model_type)(config, pools)

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
                if isinstance(module, nn.Embedding) and path.endswith("word_embeddings"):
                    values[self.config.vocab_size :] = 0.0
                yield f"{path}.{name}", values


@dataclass(frozen=True, slots=True)
class Logits:
    """The output of the heads. M: masked slots. V: the padded vocabulary."""

    masked_lm: Tensor  # (M, V); minus infinity for padding of the vocabulary
    next_sentence: Tensor | None  # (B, 2); None: the model has no such head


class Predictions(nn.Module):
    """The masked-word head. Its weights are the word embeddings, an argument of each call.

    transform, bias: None for a model without them.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.transform = NormedDense(width, config, config.has_biases) if config.use_cls_layer else None
        has_bias = config.use_prediction_bias
        self.bias = nn.Parameter(torch.zeros(config.padded_vocab_size)) if has_bias else None
        self.vocab_size = config.vocab_size
        self.activation = ACTIVATIONS[config.hidden_act]
        # Devices may replace this large product by their own.
        self.project: Callable[[Tensor, Tensor, Tensor], Tensor] = F.linear

    def forward(self, rows: Tensor, words: Tensor) -> Tensor:
        if self.transform is not None:
            rows = self.transform.LayerNorm(self.activation(self.transform.dense(rows)))
        return self.logits(rows, words)

    def logits(self, rows: Tensor, words: Tensor) -> Tensor:
        """The product with the word embeddings. Minus infinity for padding of the vocabulary."""
        bias = words.new_zeros(self.vocab_size) if self.bias is None else self.bias[: self.vocab_size]
        padding = (0, len(words) - self.vocab_size)
        return self.project(rows, words, F.pad(bias, padding, value=-math.inf))


class BertForMaskedLM(HeadedBert):
    """The encoder with the masked-word head, and random weights. Without the other head, it has no pooler."""

    ties_words = True
    pairs = False  # it has the next-sentence head

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, pools=self.pairs)
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
        words = self.bert.embeddings.word_embeddings.weight
        return self.cls.predictions(rows.index_select(0, batch.masked()), words)


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
    return 2 * (find("encoder", shape.model_type).operations(lengths, shape) + heads)
