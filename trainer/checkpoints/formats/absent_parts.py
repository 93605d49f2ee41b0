"""Writing models of Graphcore's and RaNNC's programs for other programs, which need parts that the models
lack.

A missing bias equals a bias of zeros. A missing dense layer before the word logits cannot be imitated,
because in other programs an activation and a norm follow this layer. A model with norms before its parts
(pre-norm) is a MegatronBert in transformers. A TensorFlow 1 checkpoint stores tensors by name, next to a
bert_config.json that can describe any shape.
"""

from dataclasses import replace

import torch

from bertdata.errors import SettingsError
from trainer.checkpoints.absent_parts import BIASES, list_missing_biases
from trainer.checkpoints.any_checkpoint import DECODER, Checkpoint, StoredTensor
from trainer.checkpoints.formats.config_file import find_unusual_keys
from trainer.config.model import ModelConfig
from trainer.config.modernbert import ModernBertConfig

TRANSFORMERS = "transformers"
"""The only program whose models may have untied word logits."""

_WORD_HEAD = "cls.predictions."


def add_missing_biases(
    checkpoint: Checkpoint, program: str, *, has_norms_first: bool = False, says_shape: bool = False
) -> Checkpoint:
    """Add biases of zeros where the checkpoint's model has none, for a program that needs all biases.

    Return the changed checkpoint. SettingsError for a model that the program cannot represent.
    program: name of the program that reads the result, for messages.
    has_norms_first: whether the program also has models with norms before their parts (pre-norm).
    says_shape: whether the format can store a model of any shape, because its model file describes the shape.
    """
    config = checkpoint.expect_config()
    if isinstance(config, ModernBertConfig):
        raise SettingsError(
            f"{checkpoint.path}: is a ModernBERT: {program} has no such model; expected --to huggingface"
        )
    if not config.tie_word_embeddings and DECODER in checkpoint.weights and program != TRANSFORMERS:
        raise SettingsError(
            f"{checkpoint.path}: tie_word_embeddings is false: {program} has none whose word logits have "
            "weights of their own; expected --to huggingface"
        )
    has_form = (has_norms_first or says_shape) and type(config) is ModelConfig  # BERT only, no subclass
    if config.megatron_residual_connection and not has_form:
        raise SettingsError(
            f"{checkpoint.path}: megatron_residual_connection is true: {program} has no such model"
        )
    heads = _has_heads(checkpoint)
    if heads and not config.use_cls_layer and not says_shape:
        raise SettingsError(
            f"{checkpoint.path}: use_cls_layer is false: {program} has no model without the layer before the "
            "word logits"
        )
    zeros = list_missing_biases(config, heads)
    if not zeros:
        return checkpoint
    weights = {
        name: checkpoint.weights.get(name) or StoredTensor.of(torch.zeros(size))
        for name, size in zeros.items()
    }
    whole = replace(config, use_qkv_bias=True, use_attention_projection_bias=True, use_prediction_bias=True)
    return replace(checkpoint, config=whole, weights={**checkpoint.weights, **weights})


def drop_word_head(checkpoint: Checkpoint) -> Checkpoint:
    """Remove a masked-word head that has no dense layer before the word logits. Return the changed
    checkpoint.

    transformers has no head without a dense layer, so it could not read the weights. All other parts of the
    model are kept.
    """
    config = checkpoint.expect_config()
    if config.use_cls_layer or not _has_heads(checkpoint):
        return checkpoint
    weights = {name: value for name, value in checkpoint.weights.items() if not name.startswith(_WORD_HEAD)}
    return replace(
        checkpoint, config=replace(config, use_cls_layer=True, use_prediction_bias=True), weights=weights
    )


def describe_changes(checkpoint: Checkpoint, to: str = "") -> str:
    """Return the end of a message about a written model: how the written model differs from the checkpoint's
    model, or "" if they are equal.

    to: name of the format that is written.
    """
    config = checkpoint.expect_config()
    if not config.has_biases:
        return ""
    heads = _has_heads(checkpoint)
    keys = [*BIASES, "use_prediction_bias"] if heads else [*BIASES]
    lacks_layer = heads and not config.use_cls_layer
    if lacks_layer and to == "huggingface":
        keys.remove("use_prediction_bias")
    names = [name for name in keys if not getattr(config, name)]
    said = f", zeros for its missing biases (false: {', '.join(names)})" if names else ""
    if to == "huggingface":
        if config.megatron_residual_connection:
            said += ", as a MegatronBert"
        if lacks_layer:
            said += ", without the head of masked words: transformers has none without a layer before it"
    elif to == "tf1":
        shapes = [f"{name} {str(value).lower()}" for name, value in find_unusual_keys(config).items()]
        if shapes:
            said += f"; bert_config.json says {' and '.join(shapes)}, which Google's program does not know"
    return said


def _has_heads(checkpoint: Checkpoint) -> bool:
    """Return whether the checkpoint has pre-training heads."""
    return any(name.startswith("cls.") for name in checkpoint.weights)
