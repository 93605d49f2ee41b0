"""Import and export of models in Hugging Face form: a directory with config.json and model.safetensors.

Nothing is unpickled: weights come from safetensors, or from PyTorch's own format with
``weights_only=True``, which holds tensors and plain containers.
"""

import json
from collections.abc import Mapping
from pickle import UnpicklingError

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor
from torch.nn import functional as F

from bertdata.config.value_check import read_object
from bertdata.errors import DataError, SettingsError
from bertdata.io import storage
from trainer.config.model import ModelConfig
from trainer.model.bert import BertForPreTraining

WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
"""Names of a directory's file of weights, in order of preference."""

_WORDS = "bert.embeddings.word_embeddings.weight"
_BIAS = "cls.predictions.bias"
# Parts that an encoder-only file may lack; they keep their initial weights.
_HEADS = ("cls.", "bert.pooler.")
_OLD_NAMES = {".dense_act.": ".dense.", ".gamma": ".weight", ".beta": ".bias", ".decoder.bias": ".bias"}
# Copies of tied tensors, and tables that are not parameters.
_DROPPED = ("cls.predictions.decoder.", "bert.embeddings.position_ids")


def read_config(directory: str) -> ModelConfig:
    """The configuration of a directory in Hugging Face form."""
    path = storage.join(directory, "config.json")
    return ModelConfig.from_dict(read_object(path), path)


def import_weights(model: BertForPreTraining, path: str) -> list[str]:
    """Fill the model from a file or directory; returns the names of the heads' tensors that it lacks.

    Names may lack the prefix ``bert.`` (encoder-only files) or start with ``module.``; norms may have
    gamma and beta, NVIDIA's layers the name ``dense_act``. The vocabulary is padded with rows of zeros.
    """
    found = rename(read_weights(path), model.config)
    own = model.state_dict()
    missing = [name for name in own if name not in found]
    lost = [name for name in missing if not name.startswith(_HEADS)]
    extra = [name for name in found if name not in own]
    for word, names in (("lacks", lost), ("unexpected", extra)):
        if names:
            some = f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]
            raise DataError(f"{path}: {word} {some}; expected a BERT of the configuration's depth")
    for name, tensor in found.items():
        if tensor.shape != (wanted := own[name].shape):
            raise DataError(f"{path}: {name} has shape {list(tensor.shape)}, expected {list(wanted)}")
    model.load_state_dict(found, strict=False)
    return missing


def export_model(model: BertForPreTraining, directory: str) -> None:
    """Write config.json and model.safetensors for transformers' from_pretrained."""
    config = model.config
    if config.megatron_residual_connection:
        raise SettingsError("megatron_residual_connection: transformers has no such model")
    weights = model.state_dict()
    for name in (_WORDS, _BIAS):
        weights[name] = weights[name][: config.vocab_size]
    weights = {name: tensor.contiguous() for name, tensor in weights.items()}
    values = {"architectures": ["BertForPreTraining"], "model_type": "bert", **config.as_json()}
    storage.make_directory(directory)
    with storage.open_output(storage.join(directory, "config.json")) as file:
        file.write(json.dumps(values, indent=2).encode() + b"\n")
    with storage.open_output(storage.join(directory, WEIGHT_FILES[0])) as file:
        file.write(safetensors.torch.save(weights, metadata={"format": "pt"}))


def read_weights(path: str) -> dict[str, Tensor]:
    """The tensors of a .safetensors file, of a file of torch.save, or of a directory with either."""
    if storage.is_directory(path):
        paths = [storage.join(path, name) for name in WEIGHT_FILES]
        path = next((one for one in paths if storage.exists(one)), paths[0])
    try:
        if path.endswith(".safetensors"):
            return safetensors.torch.load(storage.read_bytes(path))
        _refuse_old_torch(path)
        with storage.open_input(path) as file:
            values = torch.load(file, map_location=lambda tensor, _: tensor, weights_only=True)
    except (SafetensorError, RuntimeError, ValueError, EOFError, UnpicklingError) as error:
        reason = str(error).strip().split("\n")[0]
        raise DataError(f"{path}: not weights that can be read without unpickling: {reason}") from None
    # NVIDIA's checkpoints hold the weights under "model", beside the optimiser's state.
    values = values.get("model", values) if isinstance(values, Mapping) else values
    if not isinstance(values, Mapping) or not all(isinstance(item, Tensor) for item in values.values()):
        raise DataError(f"{path}: found {type(values).__name__}, expected tensors by name")
    return dict(values)


def _refuse_old_torch(path: str) -> None:
    """DataError with a torch whose ``weights_only`` lets a file run code (before 2.6)."""
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
        raise DataError(
            f"{path}: torch {torch.__version__} cannot read it safely; convert it to model.safetensors "
            "with torch 2.6 or later"
        )


def rename(weights: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """The tensors in fp32 under this model's names, the vocabulary padded, without copies of tied ones."""
    found = {}
    for name, tensor in weights.items():
        name = name.removeprefix("module.")
        if not name.startswith(("bert.", "cls.")):
            name = f"bert.{name}"
        for old, new in _OLD_NAMES.items():
            name = name.replace(old, new)
        found[name] = tensor.float()
    found = {name: tensor for name, tensor in found.items() if not name.startswith(_DROPPED)}
    rows = config.padded_vocab_size - config.vocab_size
    for name in (_WORDS, _BIAS):
        if name in found and len(found[name]) == config.vocab_size:
            found[name] = F.pad(found[name], (*(0, 0) * (found[name].dim() - 1), 0, rows))
    return found
