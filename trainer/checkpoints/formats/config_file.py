"""The model file next to a checkpoint: bert_config.json or config.json."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bertdata.config.value_check import read_object
from bertdata.io import storage
from bertdata.tokens.kept_files import CONFIGURATION_NAME
from trainer.config.model import ModelConfig
from trainer.config.model_file import TRAINED_ACT, TRAINED_KIND, ModelFile, read_model_file
from trainer.config.model_kinds import read_model_config
from trainer.config.roberta import RobertaConfig

GOOGLES_NAME, TRANSFORMERS_NAME = "bert_config.json", "config.json"
NAMES = (GOOGLES_NAME, TRANSFORMERS_NAME)
"""Names that the model file may have: the name in Google's programs, then the name in transformers."""

_TANH_NAMES = ("gelu_new", "gelu_pytorch_tanh")

BERT_EPSILON = ModelConfig().layer_norm_eps
"""Epsilon of the layer norms in Google's programs, which do not read it from the file."""

_UNKNOWN = 1 << 31  # transformers writes a huge number for an unknown length

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
"""Keys of Google's bert_config.json."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelDescription:
    """The content of a model file and the model it describes. ``config`` is None if there is no file."""

    config: ModelConfig | None
    file: ModelFile


def read_description(
    directory: str, given: str | None = None, *, tanh: bool = False, names: Sequence[str] = NAMES
) -> ModelDescription:
    """Read the model file of a checkpoint in a directory.

    given: path of a model file to read instead. None: search in the directory.
    tanh: True if the program that wrote the checkpoint computes ``gelu`` in its tanh form.
    names: file names to search for. The first that exists is read.
    """
    path = given
    if path is None:
        there = (storage.join(directory, name) for name in names)
        path = next((one for one in there if storage.exists(one)), None)
    if path is None:
        return ModelDescription(config=None, file=ModelFile(keys={}))
    file = read_model_file(path, tanh=tanh)
    return ModelDescription(config=read_model_config(file.keys, path), file=file)


def read_exported_length(path: str) -> int | None:
    """Return model_max_length from the tokeniser's file next to another program's weights, or None.

    transformers writes 10**30 for an unknown length.
    """
    folder = path if storage.is_directory(path) else storage.get_parent(path)
    file = storage.join(folder, CONFIGURATION_NAME)
    if not storage.exists(file):
        return None
    found = read_object(file).get("model_max_length")
    return found if type(found) is int and 0 < found < _UNKNOWN else None


def write_bert_config(config: ModelConfig, directory: str) -> None:
    """Write Google's bert_config.json, which MLPerf's, NVIDIA's and the model garden's programs read.

    Programs that read bert_config.json only know BERT, and ``gelu`` in its tanh form. For other models, extra
    keys store the true values, which this trainer reads again.
    """
    values: dict[str, Any] = {name: value for name, value in config.as_json().items() if name in GOOGLES_KEYS}
    if config.hidden_act in _TANH_NAMES:
        values["hidden_act"] = "gelu"
    elif config.hidden_act == "gelu":
        values[TRAINED_ACT] = config.hidden_act
    values |= find_unusual_keys(config)
    if isinstance(config, RobertaConfig):
        values |= {TRAINED_KIND: config.model_type, "pad_token_id": config.pad_token_id}
    if config.layer_norm_eps != BERT_EPSILON or isinstance(config, RobertaConfig):
        values["layer_norm_eps"] = config.layer_norm_eps
    with storage.open_output(storage.join(directory, GOOGLES_NAME)) as file:
        file.write(json.dumps(values, indent=2).encode() + b"\n")


def find_unusual_keys(config: ModelConfig) -> dict[str, bool]:
    """Return the model's keys, with values, that Google's BERT does not have and that change what a model
    computes.
    """
    usual = ModelConfig()
    names = ("megatron_residual_connection", "use_cls_layer")
    return {name: getattr(config, name) for name in names if getattr(config, name) != getattr(usual, name)}
