"""Shape of the model: ModelConfig, and the section of the keys that it is made from."""

import json
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, fields, make_dataclass
from typing import Any, ClassVar

from bertdata.config.declared import schema_of, setting, setting_of
from bertdata.config.value_check import check_names, check_values
from bertdata.errors import SettingsError
from trainer.config.section import Section
from trainer.plugins import TABLE as CORE
from trainer.plugins import find


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """The shape of a BERT: the keys of Google's bert_config.json, then those of other programs.

    Three keys are RaNNC's, after Megatron-LM: ``trainer.programs.rannc`` explains them. The last four
    are Graphcore's, whose models may lack these parameters: ``trainer.checkpoints.absent_parts``.

    Other kinds of models, which ``model_type`` names, are subclasses that the registry knows.

    has_biases: norms and the layer before the word logits have them. inner_ratio: intermediate_size over
    hidden_size, where only the latter is given.
    """

    has_biases: ClassVar[bool] = True
    inner_ratio: ClassVar[float] = 4.0

    vocab_size: int = setting(30522, "size of the vocabulary in tokens", least=5, most=2097152)
    hidden_size: int = setting(768, "width of a token's vector", least=1, most=262144)
    num_hidden_layers: int = setting(12, "layers of the encoder", least=1, most=4096)
    num_attention_heads: int = setting(12, "attention heads; must divide hidden_size", least=1, most=262144)
    intermediate_size: int = setting(3072, "width of the feed-forward part", least=1, most=1048576)
    hidden_act: str = setting(
        "gelu", "activation function", ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu")
    )
    hidden_dropout_prob: float = setting(0.1, "dropout of embeddings and projections", least=0, below=1)
    attention_probs_dropout_prob: float = setting(0.1, "dropout of attention", least=0, below=1)
    max_position_embeddings: int = setting(512, "ids of the longest sequence", least=1, most=1048576)
    type_vocab_size: int = setting(2, "segment types", least=1, most=65536)
    initializer_range: float = setting(0.02, "standard deviation of the initial weights", above=0)
    layer_norm_eps: float = setting(1e-12, "number that layer norms add to the variance", above=0)
    megatron_residual_connection: bool = setting(False, "layer norm before each block, as in Megatron-LM")
    scale_query_key: bool = setting(False, "scale queries and keys instead of their product")
    deep_weight_init: bool = setting(False, "smaller initial weights in deeper models")
    use_qkv_bias: bool = setting(True, "query, key and value have biases")
    use_attention_projection_bias: bool = setting(True, "the attention's output projection has a bias")
    use_cls_layer: bool = setting(True, "a dense layer and a norm come before the word logits")
    use_prediction_bias: bool = setting(True, "the word logits have a bias")
    model_type: str = setting(
        "bert", "kind of model: bert, roberta or modernbert", ("bert", "roberta", "modernbert")
    )
    pad_token_id: int = setting(0, "id of padding, behind which roberta's positions begin", least=0)

    def __post_init__(self) -> None:
        check_values(asdict(self), schema_of(type(self)))
        width, heads = self.hidden_size, self.num_attention_heads
        if width % heads:
            raise SettingsError(f"hidden_size is {width}, no multiple of num_attention_heads ({heads})")

    @property
    def padded_vocab_size(self) -> int:
        """Rows of the word embeddings: the vocabulary, padded to a multiple of 8 for the hardware."""
        return -(-self.vocab_size // 8) * 8

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "model configuration") -> "ModelConfig":
        """The configuration of a bert_config.json or config.json. SettingsError names a foreign key."""
        try:
            kind = kind_of(values)
            known = schema_of(kind) if values.keys() <= schema_of(kind).keys() else kind.file_keys()
            check_names(values, known)
            check_values(values, known)
            types: dict[str, type[Any]] = {item.name: type(item.default) for item in fields(kind)}
            return kind(**{name: types[name](value) for name, value in values.items() if name in types})
        except SettingsError as error:
            raise SettingsError(f"{where}: {error}") from None

    @classmethod
    def file_keys(cls) -> dict[str, Any]:
        """The schema of each key of a bert_config.json or config.json, those of other programs included."""
        return {**schema_of(cls), **find("model file", "keys of other programs")}

    @classmethod
    def of_file(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """The keys of a bert_config.json or config.json with this class's meaning."""
        return dict(values)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class ModelKeys(Section):
    """A file that describes the model. ``MODEL_SECTION`` adds keys that override the file's."""

    model_config: str | None = setting(
        None, "bert_config.json of the model; inline keys override it", common=True
    )
    gelu: str | None = setting(
        None,
        "form of the activation gelu: exact, by the error function, or tanh, the approximation of "
        "Google's programs (default: exact)",
        ("exact", "tanh"),
    )

    def settings(self) -> dict[str, Any]:
        """The keys of a ModelConfig: those of the model_config file, overridden by inline keys."""
        settings = self.described()
        if self.gelu == "tanh" and settings.get("hidden_act") == "gelu":
            settings["hidden_act"] = "gelu_new"
        return settings

    def described(self) -> dict[str, Any]:
        """The keys of a ModelConfig as they are given, with the activation's name whatever its form."""
        settings: dict[str, Any] = {}
        if self.model_config:
            settings = find("model file", "its keys")(self.model_config)
        values = self.values()
        inline = {name: values[name] for name in schema_of(ModelConfig) if values[name] is not None}
        if "hidden_size" in inline:
            ratio = kind_of(settings | inline).inner_ratio
            settings["intermediate_size"] = int(ratio * inline["hidden_size"])
        return settings | inline


_OTHERWISE = {"vocab_size": "the dataset's", "intermediate_size": "four times hidden_size"}
"""The usual value of a key that neither configuration nor file gives, where it is not ModelConfig's."""


def inline_key(kind: type[ModelConfig], item: Field[Any]) -> tuple[str, Any, Any]:
    """Name, type and declaration of the key that overrides a field of the class. None: not given."""
    otherwise = _OTHERWISE.get(item.name, json.dumps(item.default))
    key = setting_of(kind, item.name, default=None, help=f" (default: model_config's, else {otherwise})")
    of_value: Any = item.type
    return item.name, of_value | None, key


MODEL_SECTION: type[ModelKeys] = make_dataclass(
    "ModelSection",
    [inline_key(ModelConfig, item) for item in fields(ModelConfig)],
    bases=(ModelKeys,),
    frozen=True,
    kw_only=True,
)
"""The section of the model's keys: those of ModelKeys, and one for each of ModelConfig's."""


def kind_of(values: Mapping[str, Any]) -> type[ModelConfig]:
    """The settings of the kind of model that these keys describe. Those of a bert where it is unknown."""
    name = str(values.get("model_type"))
    return find("model settings", name if name in CORE["model settings"] else "bert")
