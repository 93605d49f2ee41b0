"""Shapes of published models, as configuration keys."""

from typing import Any

from trainer.checkpoints.formats.config_file import GOOGLES_KEYS
from trainer.config.model import ModelConfig


def make_bert_shape(layers: int, width: int, heads: int) -> dict[str, Any]:
    """Return the configuration keys for an uncased BERT of this size (Devlin et al. 2018)."""
    others = ModelConfig().as_json()
    shape = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}
    return {name: others[name] for name in GOOGLES_KEYS} | shape | {"intermediate_size": 4 * width}


BERT_BASE, BERT_LARGE = make_bert_shape(12, 768, 12), make_bert_shape(24, 1024, 16)
