"""Parts that models of Graphcore's programs may lack, and what stands for them in other programs.

A missing bias is a bias of zeros, exactly. A missing dense layer before the word logits is nothing that the
layer of other programs, with its activation and norm, could compute.
"""

from collections.abc import Iterable
from dataclasses import replace

import torch

from bertdata.errors import DataError, SettingsError
from trainer.config.model import ModelConfig
from trainer.checkpoint.stored import WORD_BIAS, Checkpoint, Stored, StoredTensor

_TRANSFORM = "cls.predictions.transform."
_BIASES = {
    "use_qkv_bias": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "use_attention_projection_bias": ("attention.output.dense",),
}


def completed(checkpoint: Checkpoint, program: str) -> Checkpoint:
    """The checkpoint with zeros for the biases that its model lacks, as other programs need them.

    SettingsError for a model that the program does not have.
    """
    config = checkpoint.expect_config()
    if config.megatron_residual_connection:
        raise SettingsError(f"megatron_residual_connection: {program} has no such model")
    heads = _has_heads(checkpoint)
    if heads and not config.use_cls_layer:
        lacks = "no model without the layer before the word logits"
        raise SettingsError(f"use_cls_layer is false: {program} has {lacks}")
    zeros = missing_biases(config, heads)
    if not zeros:
        return checkpoint
    weights = {name: checkpoint.weights.get(name) or _zeros(size) for name, size in zeros.items()}
    whole = replace(config, use_qkv_bias=True, use_attention_projection_bias=True, use_prediction_bias=True)
    return replace(checkpoint, config=whole, weights={**checkpoint.weights, **weights})


def told(checkpoint: Checkpoint) -> str:
    """The biases that ``completed`` adds, for a message; empty where nothing is missing."""
    config = checkpoint.expect_config()
    keys = [*_BIASES, "use_prediction_bias"] if _has_heads(checkpoint) else [*_BIASES]
    names = [name for name in keys if not getattr(config, name)]
    return f", zeros for its missing biases (false: {', '.join(names)})" if names else ""


def missing_biases(config: ModelConfig, heads: bool) -> dict[str, int]:
    """Name and size of each bias that the model lacks; heads: those of pre-training count too."""
    found = {
        f"bert.encoder.layer.{layer}.{part}.bias": config.hidden_size
        for layer in range(config.num_hidden_layers)
        for key, parts in _BIASES.items()
        if not getattr(config, key)
        for part in parts
    }
    if heads and not config.use_prediction_bias:
        found[WORD_BIAS] = config.vocab_size
    return found


def without_zero_biases(found: Stored, config: ModelConfig, path: str) -> dict[str, StoredTensor]:
    """The tensors without biases of zeros that the model lacks; DataError names one that is not of zeros."""
    absent = missing_biases(config, heads=True)
    for name in absent:
        if name in found and found[name].read().any():
            wanted = f"give {_key_of(name)} true"
            raise DataError(f"{path}: {name} is not zero, and the model has no such bias; {wanted}")
    return {name: tensor for name, tensor in found.items() if name not in absent}


def check_transform(found: Iterable[str], config: ModelConfig, path: str) -> None:
    """DataError where a checkpoint has the layer before the word logits, and the model's head has not."""
    there = any(name.startswith(_TRANSFORM) for name in found)
    if there and not config.use_cls_layer:
        found_there = f"has the layer before the word logits ({_TRANSFORM[:-1]})"
        raise DataError(f"{path}: {found_there}, and the model has no such layer; give use_cls_layer true")


def remedy(lost: Iterable[str]) -> str:
    """The keys of a model without the lost biases, for an error; empty where other tensors are lost."""
    keys = {name: _key_of(name) for name in lost}
    if not keys or not all(keys.values()):
        return ""
    return f"; give {' and '.join(f'{key} false' for key in dict.fromkeys(keys.values()))}"


def _has_heads(checkpoint: Checkpoint) -> bool:
    return any(name.startswith("cls.") for name in checkpoint.weights)


def _key_of(name: str) -> str | None:
    """The key of a bias that a model may lack; None for another tensor."""
    if name == WORD_BIAS:
        return "use_prediction_bias"
    found = (key for key, parts in _BIASES.items() if any(name.endswith(f".{part}.bias") for part in parts))
    return next(found, None)


def _zeros(size: int) -> StoredTensor:
    return StoredTensor((size,), lambda: torch.zeros(size))
