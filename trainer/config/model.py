"""Shape of the model: ModelConfig."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from bertdata.config.declared import schema_of, setting
from bertdata.config.value_check import check_values
from bertdata.errors import SettingsError
from trainer.config.foreign_keys import FOREIGN
from trainer.config.sections.section import named

MEGATRON = "megatron-bert"
"""transformers' kind of a BERT whose norms come first (megatron_residual_connection)."""


def check_length(ids: int, longest: int | None, where: str = "", remedy: str = "") -> None:
    """Raise SettingsError where a sequence has more ids than the model has positions.

    longest: max_position_embeddings; None: not known yet. where: what has the sequence. remedy: of the error.
    """
    if longest is not None and ids > longest:
        said = f"sequences of {ids} ids, the model has max_position_embeddings {longest}"
        raise SettingsError("".join((f"{where}: " if where else "", said, f"; {remedy}" if remedy else "")))


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """The shape of a BERT: the keys of Google's bert_config.json, then those of other programs.

    Three keys are RaNNC's, after Megatron-LM: ``trainer.programs.rannc`` explains them. The last four
    are Graphcore's, whose models may lack these parameters: ``trainer.checkpoints.absent_parts``.

    Other kinds of models are subclasses, which ``model_type`` names (``trainer.plugins``).

    encoder: the name of the kind's encoder in that table, or ``package.module:NAME``. Empty: model_type.
    has_biases: norms and the layer before the word logits have them. inner_ratio: intermediate_size over
    hidden_size, where only the latter is given.
    """

    encoder: ClassVar[str] = ""
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
    model_type: str = named("model settings", "bert", "kind of model: bert, roberta or modernbert")
    pad_token_id: int = setting(0, "id of padding, behind which roberta's positions begin", least=0)
    classifier_dropout: float | None = setting(None, "dropout before a classifier", least=0, below=1)
    tie_word_embeddings: bool = setting(True, "the word logits use the word embeddings as their weights")

    @property
    def encoder_name(self) -> str:
        """Name of the encoder in the plugins' table, or ``package.module:NAME``."""
        return self.encoder or self.model_type

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
    def file_keys(cls) -> dict[str, Any]:
        """The schema of each key of a bert_config.json or config.json, those of other programs included."""
        return {**schema_of(cls), **FOREIGN}

    @classmethod
    def of_file(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """The keys of a bert_config.json or config.json with this class's meaning."""
        return dict(values)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
