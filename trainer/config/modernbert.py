"""The shape of a ModernBERT (Warner et al. 2024)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bertdata.config.declared import derive_schemas, repeat_setting, setting
from bertdata.config.settings import require
from bertdata.config.value_check import check_values
from bertdata.errors import SettingsError
from trainer.config.model import ModelConfig

_LAYER_TYPES = ("full_attention", "sliding_attention")
"""transformers' names for global layers, which see whole sequences, and local layers, which see a window."""

_NAMES = {
    "hidden_activation": "hidden_act",
    "norm_eps": "layer_norm_eps",
    "attention_dropout": "attention_probs_dropout_prob",
    "attn_out_dropout_prob": "hidden_dropout_prob",
    "decoder_bias": "use_prediction_bias",
}
"""For each key of config.json, the name that this trainer has for it. Only the original ModernBERT program
has the key attn_out_dropout_prob.
"""

_FIXED_FIELDS = {
    "type_vocab_size": 1,
    "megatron_residual_connection": True,
    "scale_query_key": False,
    "deep_weight_init": True,
    "use_qkv_bias": False,
    "use_attention_projection_bias": False,
    "use_cls_layer": True,
}
"""Fields of ModelConfig that have the same value in every ModernBERT."""

_CONSTANT_KEYS = dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), False)
"""Keys of transformers with the same value in every published ModernBERT. No other value is supported."""

_LAYER_SCHEMAS = {
    "layer_types": {"type": ["array", "null"], "items": {"type": "string"}},
    "rope_parameters": {
        "type": ["object", "null"],
        "properties": {
            kind: {"type": ["object", "null"], "properties": {"rope_theta": {"type": "number"}}}
            for kind in _LAYER_TYPES
        },
    },
}
"""JSON Schema of the keys about layers and rotary positions in config.json as transformers 5 writes it."""

_SPEED_KEYS = (
    "deterministic_flash_attn",
    "reference_compile",
    "repad_logits_with_grad",
    "sparse_prediction",
    "sparse_pred_ignore_index",
)
"""Keys of transformers that affect speed, not results."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModernBertConfig(ModelConfig):
    """The shape of a ModernBERT, by default of the base model.

    hidden_dropout_prob is the dropout after the attention's output projection, 0.1 in the original program.
    transformers uses a single value for this dropout and for the dropout of attention weights.
    """

    has_biases: ClassVar[bool] = False
    inner_ratio: ClassVar[float] = 1.5

    vocab_size: int = repeat_setting(ModelConfig, "vocab_size", default=50368)
    num_hidden_layers: int = repeat_setting(ModelConfig, "num_hidden_layers", default=22)
    intermediate_size: int = repeat_setting(ModelConfig, "intermediate_size", default=1152)
    attention_probs_dropout_prob: float = repeat_setting(
        ModelConfig, "attention_probs_dropout_prob", default=0.0
    )
    max_position_embeddings: int = repeat_setting(ModelConfig, "max_position_embeddings", default=8192)
    type_vocab_size: int = repeat_setting(ModelConfig, "type_vocab_size", default=1)
    layer_norm_eps: float = repeat_setting(ModelConfig, "layer_norm_eps", default=1e-5)
    megatron_residual_connection: bool = repeat_setting(
        ModelConfig, "megatron_residual_connection", default=True
    )
    deep_weight_init: bool = repeat_setting(ModelConfig, "deep_weight_init", default=True)
    use_qkv_bias: bool = repeat_setting(ModelConfig, "use_qkv_bias", default=False)
    use_attention_projection_bias: bool = repeat_setting(
        ModelConfig, "use_attention_projection_bias", default=False
    )
    model_type: str = repeat_setting(ModelConfig, "model_type", default="modernbert")
    local_attention: int = setting(
        128, "tokens that a token of a local layer sees, half of them on each side", least=2
    )
    global_attn_every_n_layers: int = setting(
        3, "every Nth layer, starting with the first, attends to whole sequences", least=1
    )
    global_rope_theta: float = setting(
        160000.0, "base of rotary positions in layers that attend to whole sequences", above=0, by_phase=True
    )
    local_rope_theta: float = setting(
        10000.0, "base of rotary positions in local layers", above=0, by_phase=True
    )
    embedding_dropout: float = setting(0.0, "dropout of ModernBERT's embeddings", least=0, below=1)
    mlp_dropout: float = setting(0.0, "dropout inside ModernBERT's feed-forward layer", least=0, below=1)
    initializer_cutoff_factor: float = setting(2.0, "largest initial weight, in standard deviations", above=0)
    classifier_pooling: str = setting(
        "mean", "input of a ModernBERT's classification layer: cls token or mean", ("cls", "mean")
    )
    classifier_dropout: float | None = repeat_setting(ModelConfig, "classifier_dropout", default=0.0)

    def __post_init__(self) -> None:
        ModelConfig.__post_init__(self)  # super() does not work in a class with slots
        for name, value in _FIXED_FIELDS.items():
            found = f"{name} is {getattr(self, name)}, expected {value} for model_type modernbert"
            require(getattr(self, name) == value, found)
        size = self.hidden_size // self.num_attention_heads
        require(size % 2 == 0, f"heads have {size} values, expected an even number for rotary positions")

    @property
    def reach(self) -> int:
        """Number of neighbouring tokens on each side that a token sees in a local layer."""
        return self.local_attention // 2

    def is_global(self, layer: int) -> bool:
        """Return whether a token sees its whole sequence in this layer. Layers are counted from 0."""
        return layer % self.global_attn_every_n_layers == 0

    @classmethod
    def file_keys(cls) -> dict[str, Any]:
        """Return the schema of each key that a ModernBERT's model file may have."""
        fixed = {name: {"const": value} for name, value in _CONSTANT_KEYS.items()}
        unread = dict.fromkeys(_SPEED_KEYS, True)
        return {**ModelConfig.file_keys(), **derive_schemas(cls), **fixed, **unread}

    @classmethod
    def of_file(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Translate the keys of config.json, as transformers 4.48 or 5 writes it, to this class's fields."""
        check_values(values, _LAYER_SCHEMAS)
        found = dict(values)
        found.setdefault("attn_out_dropout_prob", found.get("attention_dropout", 0.0))
        found.setdefault("classifier_pooling", "cls")
        found |= _read_layers(found.pop("layer_types", None), found.pop("rope_parameters", None) or {})
        if found.get("local_rope_theta", 0) is None:
            found["local_rope_theta"] = found.get("global_rope_theta", cls().global_rope_theta)
        activation = found.pop("classifier_activation", None)
        require(
            activation in (None, found.get("hidden_activation", "gelu")),
            f"classifier_activation is {activation!r}, expected that of hidden_activation",
        )
        named = {ours: found.pop(name) for name, ours in _NAMES.items() if name in found}
        return found | named

    def for_transformers(self) -> dict[str, Any]:
        """Return the keys for config.json, readable by transformers 4.48 and 5."""
        values = {name: value for name, value in self.as_json().items() if name not in _FIXED_FIELDS}
        theirs = {ours: name for name, ours in _NAMES.items()}
        values = {theirs.get(name, name): value for name, value in values.items()}
        thetas = (self.global_rope_theta, self.local_rope_theta)
        kinds = (_LAYER_TYPES[not self.is_global(layer)] for layer in range(self.num_hidden_layers))
        rope = ({"rope_theta": theta, "rope_type": "default"} for theta in thetas)
        special = dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"))
        return {
            **values,
            **_CONSTANT_KEYS,
            **special,
            "classifier_activation": self.hidden_act,
            "layer_types": list(kinds),
            "rope_parameters": dict(zip(_LAYER_TYPES, rope, strict=True)),
        }


def _read_layers(kinds: Any, rope: Mapping[str, Any]) -> dict[str, Any]:
    """Translate layer_types and rope_parameters, which transformers 5 writes, to keys of ModernBertConfig.

    SettingsError for layers or rotary positions that no published ModernBERT has.
    """
    found: dict[str, Any] = {}
    if kinds is not None:
        # layer_types must repeat with a fixed period, the distance from layer 0 to the next global layer:
        # full, sliding, sliding, full, sliding, ... has the period 3.
        every = next((n for n in range(1, len(kinds)) if kinds[n] == _LAYER_TYPES[0]), max(len(kinds), 1))
        expected = [_LAYER_TYPES[bool(layer % every)] for layer in range(len(kinds))]
        require(
            list(kinds) == expected, "layer_types: expected full_attention in every n-th layer from the first"
        )
        found["global_attn_every_n_layers"] = every
    for kind, name in zip(_LAYER_TYPES, ("global_rope_theta", "local_rope_theta"), strict=True):
        values = rope.get(kind) or {}
        if (form := values.get("rope_type", "default")) != "default":
            raise SettingsError(f"rope_parameters: {kind} has the rope_type {form!r}, expected 'default'")
        if "rope_theta" in values:
            found[name] = values["rope_theta"]
    return found
