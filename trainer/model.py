"""BERT with its two heads: masked words and next sentence (Devlin et al. 2018).

Parameters carry Hugging Face's names. Three things keep it fast: the head is computed for masked
positions only, attention is PyTorch's fused one, and where shapes may vary the padding is taken out,
so that linear layers see real tokens only.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from difflib import get_close_matches
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertdata import storage
from bertdata.errors import SettingsError

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
}

# Keys that other programs write and that change nothing here.
_SILENT_KEYS = (
    "architectures model_type transformers_version _name_or_path torch_dtype dtype use_cache pad_token_id "
    "bos_token_id eos_token_id classifier_dropout gradient_checkpointing output_all_encoded_layers "
    "is_decoder add_cross_attention tie_word_embeddings id2label label2id position_embedding_type "
    "directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head "
    "pooler_type"
)
_WANTED = {"model_type": "bert", "position_embedding_type": "absolute", "is_decoder": False}


def _key(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """The shape of a BERT: the keys of Google's bert_config.json, then those of other programs.

    The last three are RaNNC's, after Megatron-LM. Where their authors leave the details open:

    - ``megatron_residual_connection``: attention and feed-forward part get layer-normed input, and the
      residual is taken before the norm. No parameter is added: a norm keeps its name and stands where
      its output is used next, so that the embeddings' feeds the first attention, and the last layer's
      is the final one.
    - ``scale_query_key``: query and key are each multiplied by (size of a head)^-1/4, instead of their
      product by its ^-1/2; the same numbers but for rounding, and no overflow in 16 bits.
    - ``deep_weight_init``: weights of the two projections that end in the residual start with the
      deviation ``initializer_range / sqrt(2 * num_hidden_layers)``.
    """

    vocab_size: int = _key(30522, "tokens of the vocabulary")
    hidden_size: int = _key(768, "width of a token's vector")
    num_hidden_layers: int = _key(12, "layers")
    num_attention_heads: int = _key(12, "attention heads; must divide hidden_size")
    intermediate_size: int = _key(3072, "width of the feed-forward part")
    hidden_act: str = _key("gelu", f"activation: {', '.join(ACTIVATIONS)}")
    hidden_dropout_prob: float = _key(0.1, "dropout of embeddings and projections")
    attention_probs_dropout_prob: float = _key(0.1, "dropout of attention weights")
    max_position_embeddings: int = _key(512, "longest sequence")
    type_vocab_size: int = _key(2, "segments")
    initializer_range: float = _key(0.02, "standard deviation of weights at the start")
    layer_norm_eps: float = _key(1e-12, "added to the variance in layer norms")
    megatron_residual_connection: bool = _key(False, "layer norm before attention and feed-forward part")
    scale_query_key: bool = _key(False, "scale query and key instead of their product")
    deep_weight_init: bool = _key(False, "smaller weights at the start, by depth")

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            kind = type(item.default)
            fits = type(value) is kind or (kind is float and type(value) is int)
            _check(fits, f"{item.name} is {value!r}, expected {kind.__name__}")
            if kind is int:
                _check(value >= 1, f"{item.name} is {value}, expected 1 or more")
            if item.name.endswith("_prob"):
                _check(0 <= value < 1, f"{item.name} is {value}, expected a probability below 1")
        _check(
            self.hidden_act in ACTIVATIONS,
            f"hidden_act is {self.hidden_act!r}, expected one of {', '.join(ACTIVATIONS)}",
        )
        _check(
            self.hidden_size % self.num_attention_heads == 0,
            f"hidden_size is {self.hidden_size}, expected a multiple of num_attention_heads "
            f"({self.num_attention_heads})",
        )

    @property
    def padded_vocab_size(self) -> int:
        """Rows of the word embeddings: the vocabulary, filled up to a multiple of 8 for the hardware."""
        return -(-self.vocab_size // 8) * 8

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "model configuration") -> "ModelConfig":
        """The configuration of a bert_config.json or config.json; SettingsError names a foreign key."""
        known = {item.name for item in fields(cls)}
        for name, value in values.items():
            if name not in known and name not in _SILENT_KEYS.split():
                near = get_close_matches(name, sorted(known), n=1, cutoff=0)
                raise SettingsError(f"{where}: unknown key {name!r}; did you mean {near[0]!r}?")
            if name in _WANTED and value != _WANTED[name]:
                raise SettingsError(f"{where}: {name} is {value!r}, expected {_WANTED[name]!r}")
        try:
            return cls(**{name: value for name, value in values.items() if name in known})
        except SettingsError as error:
            raise SettingsError(f"{where}: {error}") from None

    @classmethod
    def from_file(cls, path: str) -> "ModelConfig":
        """The configuration in a JSON file, local or remote."""
        try:
            values = json.loads(storage.read_bytes(path))
        except ValueError as error:
            raise SettingsError(f"{path}: not JSON: {error}") from None
        if not isinstance(values, dict):
            raise SettingsError(f"{path}: found {type(values).__name__}, expected a JSON object")
        return cls.from_dict(values, path)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise SettingsError(message)


class Examples(Protocol):
    """What the model reads of a batch: B sequences of S ids, P slots for masked positions."""

    @property
    def input_ids(self) -> Tensor: ...
    @property
    def token_type_ids(self) -> Tensor: ...
    @property
    def attention_mask(self) -> Tensor: ...
    @property
    def masked_lm_positions(self) -> Tensor: ...
    @property
    def masked_lm_ids(self) -> Tensor: ...
    @property
    def masked_lm_weights(self) -> Tensor: ...
    @property
    def next_sentence_labels(self) -> Tensor: ...


@dataclass(frozen=True, slots=True)
class Logits:
    """What the heads say, and what the loss lines up with it; N slots, V the padded vocabulary."""

    masked_lm: Tensor  # (N, V); minus infinity where V goes beyond the vocabulary
    next_sentence: Tensor  # (B, 2)
    masked_lm_ids: Tensor  # (N,) int64
    masked_lm_weights: Tensor  # (N,) float32


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the rows of a (tokens, width) matrix lie in B sequences of S places.

    real: the rows' places in the flattened sequences, or None when every place has its row;
    mask: (B, 1, 1, S), true where attention may look, or None when it may look everywhere.
    """

    batch: int
    length: int
    real: Tensor | None
    mask: Tensor | None

    @classmethod
    def of(cls, attention_mask: Tensor, fixed_shapes: bool) -> "Layout":
        batch, length = attention_mask.shape
        real = attention_mask.bool()
        if fixed_shapes:
            # Rows that only fill up a batch look at their first place, lest their softmax be empty.
            first = torch.arange(length, device=real.device) == 0
            return cls(batch, length, None, (real | first)[:, None, None])
        places = real.flatten().nonzero().squeeze(1)
        if len(places) == batch * length:
            return cls(batch, length, None, None)
        return cls(batch, length, places, real[:, None, None])

    def pack(self, places: Tensor) -> Tensor:
        """The rows of a (B * S, width) tensor that are real."""
        return places if self.real is None else places.index_select(0, self.real)

    def unpack(self, rows: Tensor) -> Tensor:
        """(B * S, width): the rows in their places, zero elsewhere."""
        if self.real is None:
            return rows
        return rows.new_zeros(self.batch * self.length, rows.shape[1]).index_copy(0, self.real, rows)

    def rows_of(self, places: Tensor) -> Tensor:
        """The row numbers of places in the flattened sequences."""
        return places if self.real is None else torch.searchsorted(self.real, places)


class Embeddings(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.padded_vocab_size, config.hidden_size)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, layout: Layout) -> Tensor:
        positions = torch.arange(layout.length, device=input_ids.device).repeat(layout.batch)
        words: Tensor = self.word_embeddings(layout.pack(input_ids.reshape(-1)))
        types: Tensor = self.token_type_embeddings(layout.pack(token_type_ids.reshape(-1)))
        places: Tensor = self.position_embeddings(layout.pack(positions))
        return words + types + places


class Dense(nn.Module):
    """A linear layer under Hugging Face's name for it."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, outputs)


class NormedDense(Dense):
    def __init__(self, inputs: int, config: ModelConfig) -> None:
        super().__init__(inputs, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)


class SelfAttention(nn.Module):
    """Query, key and value apart: each has a LAMB trust ratio of its own."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.dropout = config.attention_probs_dropout_prob
        size = config.hidden_size // config.num_attention_heads
        self.query_key_scale = size**-0.25 if config.scale_query_key else None
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, rows: Tensor, layout: Layout) -> Tensor:
        shape = (layout.batch, layout.length, self.heads, -1)
        query, key, value = (
            layout.unpack(project(rows)).view(shape).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        scale = None
        if self.query_key_scale is not None:
            query, key, scale = query * self.query_key_scale, key * self.query_key_scale, 1.0
        dropout = self.dropout if self.training else 0.0
        seen = F.scaled_dot_product_attention(query, key, value, layout.mask, dropout, scale=scale)
        return layout.pack(seen.transpose(1, 2).reshape(layout.batch * layout.length, -1))


class Attention(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self = SelfAttention(config)
        self.output = NormedDense(config.hidden_size, config)


class Layer(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.intermediate = Dense(config.hidden_size, config.intermediate_size)
        self.output = NormedDense(config.intermediate_size, config)
        self.activation = ACTIVATIONS[config.hidden_act]
        self.dropout = config.hidden_dropout_prob
        self.norm_first = config.megatron_residual_connection

    def forward(self, rows: Tensor, normed: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """The layer's output and what the next layer's attention reads: the same unless norms come first."""
        between: nn.LayerNorm = self.attention.output.LayerNorm
        if self.norm_first:
            rows = rows + self._attend(normed, layout)
            rows = rows + self._feed_forward(between(rows))
            return rows, self.output.LayerNorm(rows)
        rows = between(rows + self._attend(rows, layout))
        rows = self.output.LayerNorm(rows + self._feed_forward(rows))
        return rows, rows

    def _attend(self, rows: Tensor, layout: Layout) -> Tensor:
        seen = self.attention.output.dense(self.attention.self(rows, layout))
        return F.dropout(seen, self.dropout, self.training)

    def _feed_forward(self, rows: Tensor) -> Tensor:
        wide = self.activation(self.intermediate.dense(rows))
        return F.dropout(self.output.dense(wide), self.dropout, self.training)


class Encoder(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))


class Bert(nn.Module):
    """The encoder, from ids to a vector for each real token and one for each sequence."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)
        self.pooler = Dense(config.hidden_size, config.hidden_size)
        self.dropout = config.hidden_dropout_prob
        self.norm_first = config.megatron_residual_connection

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """(tokens, hidden) and (B, hidden)."""
        rows = self.embeddings(input_ids, token_type_ids, layout)
        if self.norm_first:
            rows = F.dropout(rows, self.dropout, self.training)
            normed = self.embeddings.LayerNorm(rows)
        else:
            rows = normed = F.dropout(self.embeddings.LayerNorm(rows), self.dropout, self.training)
        for layer in self.encoder.layer:
            rows, normed = layer(rows, normed, layout)
        first = torch.arange(layout.batch, device=rows.device) * layout.length
        return normed, torch.tanh(self.pooler.dense(normed.index_select(0, layout.rows_of(first))))


class Predictions(nn.Module):
    """The masked-word head; its weights are the word embeddings, handed in at each call."""

    beyond_vocabulary: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.transform = NormedDense(config.hidden_size, config)
        self.bias = nn.Parameter(torch.zeros(config.padded_vocab_size))
        beyond = torch.zeros(config.padded_vocab_size)
        beyond[config.vocab_size :] = -math.inf
        self.register_buffer("beyond_vocabulary", beyond, persistent=False)
        self.activation = ACTIVATIONS[config.hidden_act]

    def forward(self, rows: Tensor, words: Tensor) -> Tensor:
        rows = self.transform.LayerNorm(self.activation(self.transform.dense(rows)))
        return F.linear(rows, words, self.bias + self.beyond_vocabulary)


class Heads(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.predictions = Predictions(config)
        self.seq_relationship = nn.Linear(config.hidden_size, 2)


class BertForPreTraining(nn.Module):
    """The whole model; weights at the start are drawn from torch's generator, in the modules' order."""

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
        with torch.no_grad():
            self.bert.embeddings.word_embeddings.weight[config.vocab_size :] = 0

    def forward(self, batch: Examples, *, fixed_shapes: bool = False) -> Logits:
        """Logits of the masked slots of weight above 0, or of all B * P slots where shapes are fixed."""
        length, longest = batch.input_ids.shape[1], self.config.max_position_embeddings
        _check(
            length <= longest,
            f"sequences of {length} ids, at most max_position_embeddings ({longest}) allowed",
        )
        layout = Layout.of(batch.attention_mask, fixed_shapes)
        rows, pooled = self.bert(batch.input_ids, batch.token_type_ids, layout)
        starts = torch.arange(layout.batch, device=rows.device) * length
        slots = (batch.masked_lm_positions + starts[:, None]).reshape(-1)
        ids, weights = batch.masked_lm_ids.reshape(-1), batch.masked_lm_weights.reshape(-1)
        if not fixed_shapes:
            used = (weights > 0).nonzero().squeeze(1)
            slots, ids, weights = slots[used], ids[used], weights[used]
        masked = rows.index_select(0, layout.rows_of(slots))
        words = self.bert.embeddings.word_embeddings.weight
        return Logits(
            masked_lm=self.cls.predictions(masked, words),
            next_sentence=self.cls.seq_relationship(pooled),
            masked_lm_ids=ids.long(),
            masked_lm_weights=weights,
        )
