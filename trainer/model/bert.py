"""BERT with its two heads: masked words and next sentence (Devlin et al. 2018).

Parameters have Hugging Face's names. Three things keep it fast: the head is computed for masked
positions only, attention is PyTorch's fused one, and where shapes may vary the padding is removed,
so that linear layers compute real tokens only.
"""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertdata.config.value_check import check_names, check_values
from bertdata.errors import SettingsError
from schemas import load_schema
from trainer.data.batches import RowBatch

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """The shape of a BERT: the keys of Google's bert_config.json, then those of other programs.

    Types and ranges are those of ``schemas/model.json``. The last three keys are RaNNC's, after
    Megatron-LM. Their authors leave details open; here:

    - ``megatron_residual_connection``: attention and feed-forward part read layer-normed input, and the
      residual is taken before the norm. No parameter is added: each norm keeps its name and is applied
      where its output is read next, so that the norm of the embeddings feeds the first attention, and
      the norm of the last layer is the final one.
    - ``scale_query_key``: query and key are each multiplied by (size of a head)^-1/4, instead of their
      product by (size of a head)^-1/2; equal but for rounding, and without overflow in 16 bits.
    - ``deep_weight_init``: the weights of the two projections that end in the residual start with the
      standard deviation ``initializer_range / sqrt(2 * num_hidden_layers)``.
    """

    vocab_size: int = 30522  # tokens of the vocabulary
    hidden_size: int = 768  # width of a token's vector
    num_hidden_layers: int = 12
    num_attention_heads: int = 12  # must divide hidden_size
    intermediate_size: int = 3072  # width of the feed-forward part
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1  # of embeddings and projections
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512  # longest sequence
    type_vocab_size: int = 2  # segments
    initializer_range: float = 0.02  # standard deviation of weights at the start
    layer_norm_eps: float = 1e-12  # added to the variance
    megatron_residual_connection: bool = False
    scale_query_key: bool = False
    deep_weight_init: bool = False

    def __post_init__(self) -> None:
        check_values(asdict(self), _keys())
        width, heads = self.hidden_size, self.num_attention_heads
        if width % heads:
            raise SettingsError(f"hidden_size is {width}, no multiple of num_attention_heads ({heads})")

    @property
    def padded_vocab_size(self) -> int:
        """Rows of the word embeddings: the vocabulary, padded to a multiple of 8 for the hardware."""
        return -(-self.vocab_size // 8) * 8

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "model configuration") -> "ModelConfig":
        """The configuration of a bert_config.json or config.json; SettingsError names a foreign key."""
        try:
            check_names(values, _keys())
            check_values(values, _keys())
            kinds: dict[str, type[Any]] = {item.name: type(item.default) for item in fields(cls)}
            return cls(**{name: kinds[name](value) for name, value in values.items() if name in kinds})
        except SettingsError as error:
            raise SettingsError(f"{where}: {error}") from None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def parameters(self) -> int:
        """Number of trained values, those of the heads and of the vocabulary's padding included."""
        width, inner, words = self.hidden_size, self.intermediate_size, self.padded_vocab_size
        dense, norm = width * width + width, 2 * width
        embeddings = (words + self.max_position_embeddings + self.type_vocab_size) * width + norm
        layer = 4 * dense + 2 * norm + 2 * width * inner + inner + width
        heads = dense + norm + words + 2 * width + 2
        return embeddings + self.num_hidden_layers * layer + dense + heads


@cache
def _keys() -> dict[str, Any]:
    """The schema of each key, and of other programs' keys that change nothing here."""
    return dict(load_schema("model")["properties"])


@dataclass(frozen=True, slots=True)
class Logits:
    """The output of the heads, and the labels of its rows; N masked slots, V the padded vocabulary."""

    masked_lm: Tensor  # (N, V); minus infinity for padding of the vocabulary
    next_sentence: Tensor  # (B, 2)
    masked_lm_ids: Tensor  # (N,) int64
    masked_lm_weights: Tensor  # (N,) float32


@dataclass(frozen=True, slots=True)
class TokenLayout:
    """The mapping between a (tokens, width) matrix and B sequences of length S.

    real: the index of each row in the flattened sequences, or None when the rows include the padding.
    mask: (B, 1, 1, S), true at positions that attention may read, or None when it may read all.
    ends: (B + 1,), the bounds of each sequence's rows, for attention without padding; else None.
    """

    batch: int
    length: int
    real: Tensor | None
    mask: Tensor | None
    ends: Tensor | None = None

    @classmethod
    def of(cls, attention_mask: Tensor, fixed_shapes: bool, jagged: bool = False) -> "TokenLayout":
        batch, length = attention_mask.shape
        real = attention_mask.bool()
        if fixed_shapes:
            # Padding rows attend to their first position, because an empty softmax would not be finite.
            first = torch.arange(length, device=real.device) == 0
            return cls(batch, length, None, (real | first)[:, None, None])
        index = real.flatten().nonzero().squeeze(1)
        if len(index) == batch * length:
            return cls(batch, length, None, None)
        if jagged:
            return cls(batch, length, index, None, F.pad(real.sum(1).cumsum(0), (1, 0)))
        return cls(batch, length, index, real[:, None, None])

    def pack(self, padded: Tensor) -> Tensor:
        """The real rows of a (B * S, width) tensor."""
        return padded if self.real is None else padded.index_select(0, self.real)

    def unpack(self, rows: Tensor) -> Tensor:
        """The inverse of pack: (B * S, width), zero in the padding."""
        if self.real is None:
            return rows
        return rows.new_zeros(self.batch * self.length, rows.shape[1]).index_copy_(0, self.real, rows)

    def heads_of(self, rows: Tensor, heads: int) -> Tensor:
        """(B, heads, S, n) from (tokens, width): each head's part; S varies where there is no padding."""
        if self.ends is None:
            return self.unpack(rows).view(self.batch, self.length, heads, -1).transpose(1, 2)
        rows = rows.view(len(rows), heads, -1)
        jagged = torch.nested.nested_tensor_from_jagged(rows, self.ends, min_seqlen=1, max_seqlen=self.length)
        return jagged.transpose(1, 2)

    def rows_of_heads(self, parts: Tensor) -> Tensor:
        """The inverse of heads_of."""
        parts = parts.transpose(1, 2)
        if self.ends is not None:
            return parts.values().flatten(1)
        return self.pack(parts.reshape(self.batch * self.length, -1))

    def rows_of(self, positions: Tensor) -> Tensor:
        """The row number of each of (B, n) positions within the sequences, flattened."""
        starts = torch.arange(self.batch, device=positions.device) * self.length
        index = (positions + starts[:, None]).reshape(-1)
        return index if self.real is None else torch.searchsorted(self.real, index)


class Embeddings(nn.Module):
    """The sum of word, segment and position embeddings; its norm is applied by Bert."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.padded_vocab_size, config.hidden_size)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor,
        layout: TokenLayout,
        position_ids: Tensor | None = None,
    ) -> Tensor:
        if position_ids is None:
            position_ids = torch.arange(layout.length, device=input_ids.device)
        positions = position_ids.expand(layout.batch, layout.length).reshape(-1)
        words: Tensor = self.word_embeddings(layout.pack(input_ids.reshape(-1)))
        types: Tensor = self.token_type_embeddings(layout.pack(token_type_ids.reshape(-1)))
        places: Tensor = self.position_embeddings(layout.pack(positions))
        return words + types + places


class Dense(nn.Module):
    """A linear layer in a module of its own, for Hugging Face's names."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, outputs)


class NormedDense(Dense):
    """A linear layer and a norm, with an optional residual between them."""

    def __init__(self, inputs: int, config: ModelConfig) -> None:
        super().__init__(inputs, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = config.hidden_dropout_prob
        self.norm_first = config.megatron_residual_connection

    def add(self, change: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """(the new residual, the input of the next part); the same tensor unless norms come first."""
        rows = rows + F.dropout(self.dense(change), self.dropout, self.training)
        normed = self.LayerNorm(rows)
        return (rows if self.norm_first else normed), normed


class SelfAttention(nn.Module):
    """Attention with separate query, key and value, each of which has its own LAMB trust ratio."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.dropout = config.attention_probs_dropout_prob
        width = config.hidden_size
        self.query_key_scale = (width // self.heads) ** -0.25 if config.scale_query_key else None
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, rows: Tensor, layout: TokenLayout) -> Tensor:
        query, key, value = (
            layout.heads_of(project(rows), self.heads) for project in (self.query, self.key, self.value)
        )
        options: dict[str, Any] = {}
        if self.query_key_scale is not None:
            query = query * self.query_key_scale
            key = key * self.query_key_scale
            options["scale"] = 1.0  # only if needed: torch 2.0 lacks this argument
        dropout = self.dropout if self.training else 0.0
        attended = F.scaled_dot_product_attention(query, key, value, layout.mask, dropout, **options)
        return layout.rows_of_heads(attended)


class Attention(nn.Module):
    """Self-attention and its output projection."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self = SelfAttention(config)
        self.output = NormedDense(config.hidden_size, config)


class Layer(nn.Module):
    """One layer of the encoder: attention and feed-forward part."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.intermediate = Dense(config.hidden_size, config.intermediate_size)
        self.output = NormedDense(config.intermediate_size, config)
        self.activation = ACTIVATIONS[config.hidden_act]

    def forward(self, rows: Tensor, normed: Tensor, layout: TokenLayout) -> tuple[Tensor, Tensor]:
        """From this layer's residual and attention input to those of the next layer."""
        rows, normed = self.attention.output.add(self.attention.self(normed, layout), rows)
        return self.output.add(self.activation(self.intermediate.dense(normed)), rows)


class Encoder(nn.Module):
    """The layers, for Hugging Face's names; Bert runs them."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))


class Bert(nn.Module):
    """The encoder: from ids to a vector for each token and one for each sequence."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)
        self.pooler = Dense(config.hidden_size, config.hidden_size)
        self.dropout = config.hidden_dropout_prob
        self.norm_first = config.megatron_residual_connection

    def forward(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor,
        layout: TokenLayout,
        position_ids: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """(tokens, hidden) vectors of the tokens, (B, hidden) vectors of the sequences."""
        rows = self.embeddings(input_ids, token_type_ids, layout, position_ids)
        if self.norm_first:
            rows = F.dropout(rows, self.dropout, self.training)
            normed = self.embeddings.LayerNorm(rows)
        else:
            rows = normed = F.dropout(self.embeddings.LayerNorm(rows), self.dropout, self.training)
        for layer in self.encoder.layer:
            rows, normed = layer(rows, normed, layout)
        first = normed.index_select(0, layout.rows_of(torch.zeros_like(input_ids[:, :1])))
        return normed, torch.tanh(self.pooler.dense(first))


class Predictions(nn.Module):
    """The masked-word head; its weights are the word embeddings, an argument of each call."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.transform = NormedDense(config.hidden_size, config)
        self.bias = nn.Parameter(torch.zeros(config.padded_vocab_size))
        self.vocab_size = config.vocab_size
        self.activation = ACTIVATIONS[config.hidden_act]
        # Devices may replace this large product by their own.
        self.project: Callable[[Tensor, Tensor, Tensor], Tensor] = F.linear

    def forward(self, rows: Tensor, words: Tensor) -> Tensor:
        rows = self.transform.LayerNorm(self.activation(self.transform.dense(rows)))
        beyond = len(self.bias) - self.vocab_size
        return self.project(rows, words, F.pad(self.bias[: self.vocab_size], (0, beyond), value=-math.inf))


class Heads(nn.Module):
    """The masked-word head and the next-sentence head."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.predictions = Predictions(config)
        self.seq_relationship = nn.Linear(config.hidden_size, 2)


def new_model(config: ModelConfig) -> "BertForPreTraining":
    """The model with random weights in this machine's memory; SettingsError where it cannot hold them."""
    needed = 4 * config.parameters
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        raise SettingsError(
            f"a model of {config.parameters:,} parameters takes {needed / 2**30:,.1f} GiB, this machine has "
            f"{there / 2**30:,.1f} GiB; choose a smaller hidden_size, intermediate_size or num_hidden_layers"
        )
    return BertForPreTraining(config)


class BertForPreTraining(nn.Module):
    """The whole model; initial weights come from torch's generator, in the order of the modules."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.bert = Bert(config)
        self.cls = Heads(config)
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                std = config.initializer_range
                if config.deep_weight_init and name.endswith("output.dense"):
                    std /= math.sqrt(2 * config.num_hidden_layers)
                nn.init.normal_(module.weight, std=std)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
        nn.init.zeros_(self.bert.embeddings.word_embeddings.weight.detach()[config.vocab_size :])

    def forward(self, batch: RowBatch, *, fixed_shapes: bool = False, jagged: bool = False) -> Logits:
        """Logits of the masked slots with weight above 0, or of all B * P slots where shapes are fixed.

        jagged: attention gets sequences without padding, where shapes are not fixed.
        """
        length = batch.input_ids.shape[1]
        longest = self.config.max_position_embeddings
        if length > longest:
            raise SettingsError(f"sequences of {length} ids, at most max_position_embeddings ({longest})")
        layout = TokenLayout.of(batch.attention_mask, fixed_shapes, jagged)
        slots = layout.rows_of(batch.masked_lm_positions)
        ids = batch.masked_lm_ids.reshape(-1)
        weights = batch.masked_lm_weights.reshape(-1)
        if not fixed_shapes:  # nonzero waits for the GPU, so it comes before the encoder's kernels are queued
            used = (weights > 0).nonzero().squeeze(1)
            slots, ids, weights = slots[used], ids[used], weights[used]
        rows, pooled = self.bert(batch.input_ids, batch.token_type_ids, layout, batch.position_ids)
        masked = rows.index_select(0, slots)
        words = self.cls.predictions(masked, self.bert.embeddings.word_embeddings.weight)
        return Logits(words, self.cls.seq_relationship(pooled), ids.long(), weights)
