"""The shape of a model: ModelConfig."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from bertdata.config.declared import derive_schemas, setting
from bertdata.config.value_check import check_values
from bertdata.errors import SettingsError
from trainer.config.foreign_keys import FOREIGN
from trainer.config.sections.section import declare_plugin_key

MEGATRON = "megatron-bert"
"""The model_type that transformers gives a BERT with pre-norm layers (megatron_residual_connection)."""


def check_length(ids: int, longest: int | None, where: str = "", remedy: str = "") -> None:
    """Raise SettingsError if sequences have more ids than the model has positions.

    ids: number of ids in the longest sequence.
    longest: max_position_embeddings, or None if it is not known yet, which accepts every length.
    where: what contains the sequences, and a colon. The message begins with it.
    remedy: advice at the end of the message.
    """
    if longest is not None and ids > longest:
        said = f"sequences of {ids} ids, the model has max_position_embeddings {longest}"
        raise SettingsError("".join((f"{where}: " if where else "", said, f"; {remedy}" if remedy else "")))


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """The shape of a BERT. The first fields are the keys of Google's bert_config.json, the others come from
    other programs.

    Three keys (megatron_residual_connection, scale_query_key, deep_weight_init) come from RaNNC, after
    Megatron-LM. ``trainer.programs.rannc`` explains them. Four keys (use_qkv_bias to use_prediction_bias)
    come from Graphcore, whose models may lack these biases and layers.
    ``trainer.checkpoints.formats.absent_parts`` adds them for other programs.

    Other architectures are subclasses, chosen by ``model_type`` through ``trainer.plugins``. Their class
    attributes:
    encoder: name of the encoder class in the table of ``trainer.plugins``, or ``package.module:NAME``. If it
    is empty, the name is model_type.
    has_biases: whether the norms, and the dense layer before the word logits, have biases.
    inner_ratio: intermediate_size divided by hidden_size, used when only hidden_size is set.
    """

    encoder: ClassVar[str] = ""
    has_biases: ClassVar[bool] = True
    inner_ratio: ClassVar[float] = 4.0

    vocab_size: int = setting(30522, "size of the vocabulary in tokens", least=5, most=2097152)
    hidden_size: int = setting(768, "width of a token's vector", least=1, most=262144)
    num_hidden_layers: int = setting(12, "number of encoder layers", least=1, most=4096)
    num_attention_heads: int = setting(
        12, "number of attention heads, a divisor of hidden_size", least=1, most=262144
    )
    intermediate_size: int = setting(3072, "width of the feed-forward layer", least=1, most=1048576)
    hidden_act: str = setting(
        "gelu", "activation function", ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu")
    )
    hidden_dropout_prob: float = setting(0.1, "dropout of embeddings and projections", least=0, below=1)
    attention_probs_dropout_prob: float = setting(0.1, "dropout of attention", least=0, below=1)
    max_position_embeddings: int = setting(512, "most token ids in a sequence", least=1, most=1048576)
    type_vocab_size: int = setting(2, "number of segment types", least=1, most=65536)
    initializer_range: float = setting(0.02, "standard deviation of the initial weights", above=0)
    layer_norm_eps: float = setting(1e-12, "epsilon that layer norms add to the variance", above=0)
    megatron_residual_connection: bool = setting(False, "layer norm before each block, as in Megatron-LM")
    scale_query_key: bool = setting(False, "scale queries and keys before their product, instead of after it")
    deep_weight_init: bool = setting(False, "smaller initial weights in deeper models")
    use_qkv_bias: bool = setting(True, "give the query, key and value projections biases")
    use_attention_projection_bias: bool = setting(True, "give the attention's output projection a bias")
    use_cls_layer: bool = setting(True, "put a dense layer and a norm before the word logits")
    use_prediction_bias: bool = setting(True, "add a bias to the word logits")
    model_type: str = declare_plugin_key(
        "model settings", "bert", "architecture: bert, roberta or modernbert"
    )
    pad_token_id: int = setting(0, "id of the padding token; position ids of roberta start after it", least=0)
    classifier_dropout: float | None = setting(
        None, "dropout before the classification layer", least=0, below=1
    )
    tie_word_embeddings: bool = setting(True, "use the word embeddings as weights of the word logits")

    @property
    def encoder_name(self) -> str:
        """Name of the encoder class in ``trainer.plugins``, or ``package.module:NAME`` of a user's class."""
        return self.encoder or self.model_type

    def __post_init__(self) -> None:
        check_values(asdict(self), derive_schemas(type(self)))
        width, heads = self.hidden_size, self.num_attention_heads
        if width % heads:
            raise SettingsError(f"hidden_size is {width}, no multiple of num_attention_heads ({heads})")

    @property
    def padded_vocab_size(self) -> int:
        """Number of rows of the word embeddings: vocab_size rounded up to a multiple of 8, which is faster on
        GPUs.
        """
        return -(-self.vocab_size // 8) * 8

    @classmethod
    def file_keys(cls) -> dict[str, Any]:
        """Return the schema of each key that a model file may have, including keys of other programs."""
        return {**derive_schemas(cls), **FOREIGN}

    @classmethod
    def of_file(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Translate the keys of a bert_config.json or config.json to this class's fields.

        Subclasses override this, since other architectures have other names for some keys.
        """
        return dict(values)

    def as_json(self) -> dict[str, Any]:
        """Return the fields by name, for a model file or a checkpoint."""
        return asdict(self)
