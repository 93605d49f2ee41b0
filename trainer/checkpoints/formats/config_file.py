"""The file beside a checkpoint that describes its model: bert_config.json or config.json."""

import json
from typing import Any

from bertdata.config.value_check import read_object
from bertdata.io import storage
from trainer.config.model import ModelConfig
from trainer.config.model_file import TRAINED_ACT, of_file
from trainer.config.model_kinds import read_model_config

NAMES = ("bert_config.json", "config.json")

_TANH = "gelu_new"
_TANH_NAMES = (_TANH, "gelu_pytorch_tanh")

GOOGLES_KEYS = (
    "attention_probs_dropout_prob",
    "hidden_act",
    "hidden_dropout_prob",
    "hidden_size",
    "initializer_range",
    "intermediate_size",
    "max_position_embeddings",
    "num_attention_heads",
    "num_hidden_layers",
    "type_vocab_size",
    "vocab_size",
)


def read_config(directory: str, given: str | None = None, *, tanh: bool = False) -> ModelConfig | None:
    """The configuration in the given file, else in the directory, or None where there is none.

    tanh: the program computes ``gelu`` in its tanh form, as Google's, MLPerf's and NVIDIA's do; the others
    in the exact one.
    """
    path = given
    if path is None:
        there = (storage.join(directory, name) for name in NAMES)
        path = next((one for one in there if storage.exists(one)), None)
    if path is None:
        return None
    values = read_object(path)
    if tanh and TRAINED_ACT not in values and values.get("hidden_act", "gelu") == "gelu":
        values["hidden_act"] = _TANH
    return read_model_config(of_file(values, path), path)


def write_bert_config(config: ModelConfig, directory: str) -> None:
    """Write Google's bert_config.json, which MLPerf's, NVIDIA's and the model garden's programs read.

    They know one ``gelu``, the tanh form; where the weights know another, a key of our own keeps it.
    """
    values: dict[str, Any] = {name: value for name, value in config.as_json().items() if name in GOOGLES_KEYS}
    if config.hidden_act in _TANH_NAMES:
        values["hidden_act"] = "gelu"
    elif config.hidden_act == "gelu":
        values[TRAINED_ACT] = config.hidden_act
    values |= shape_keys(config)
    if config.layer_norm_eps != ModelConfig().layer_norm_eps:
        values["layer_norm_eps"] = config.layer_norm_eps
    with storage.open_output(storage.join(directory, NAMES[0])) as file:
        file.write(json.dumps(values, indent=2).encode() + b"\n")


def shape_keys(config: ModelConfig) -> dict[str, bool]:
    """The keys of ours by which a model computes otherwise than any of Google's, with their values."""
    usual = ModelConfig()
    names = ("megatron_residual_connection", "use_cls_layer")
    return {name: getattr(config, name) for name in names if getattr(config, name) != getattr(usual, name)}
