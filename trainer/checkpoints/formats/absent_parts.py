"""Models of Graphcore's and RaNNC's programs, and what stands for their parts in other programs.

A missing bias is a bias of zeros, exactly. A missing dense layer before the word logits is nothing that the
layer of other programs, with its activation and norm, could compute. Norms that come first are MegatronBert's
in transformers. TensorFlow 1's form has tensors by name, of any shape that the file beside them says.
"""

from dataclasses import replace

import torch

from bertdata.errors import SettingsError
from trainer.checkpoints.absent_parts import BIASES, missing_biases
from trainer.checkpoints.any_checkpoint import DECODER, Checkpoint, StoredTensor
from trainer.checkpoints.formats.config_file import shape_keys
from trainer.config.model import ModelConfig
from trainer.config.modernbert import ModernBertConfig

TRANSFORMERS = "transformers"
"""The program whose models may have a decoder of their own."""

_WORD_HEAD = "cls.predictions."


def completed(
    checkpoint: Checkpoint, program: str, *, has_norms_first: bool = False, says_shape: bool = False
) -> Checkpoint:
    """The checkpoint with zeros for the biases that its model lacks, as other programs need them.

    SettingsError for a model that the program does not have. has_norms_first: it has one whose norms come
    first. says_shape: the form has the weights under any shape, which the file beside them says.
    """
    config = checkpoint.expect_config()
    if isinstance(config, ModernBertConfig):
        raise SettingsError(
            f"{checkpoint.path}: is a ModernBERT: {program} has no such model; expected --to huggingface"
        )
    if not config.tie_word_embeddings and DECODER in checkpoint.weights and program != TRANSFORMERS:
        lacks = "none whose word logits have weights of their own"
        raise SettingsError(
            f"{checkpoint.path}: tie_word_embeddings is false: {program} has {lacks}; expected "
            "--to huggingface"
        )
    has_form = (has_norms_first or says_shape) and type(config) is ModelConfig  # of no later encoder
    if config.megatron_residual_connection and not has_form:
        found = "megatron_residual_connection is true"
        raise SettingsError(f"{checkpoint.path}: {found}: {program} has no such model")
    heads = _has_heads(checkpoint)
    if heads and not config.use_cls_layer and not says_shape:
        lacks = "no model without the layer before the word logits"
        raise SettingsError(f"{checkpoint.path}: use_cls_layer is false: {program} has {lacks}")
    zeros = missing_biases(config, heads)
    if not zeros:
        return checkpoint
    weights = {
        name: checkpoint.weights.get(name) or StoredTensor.of(torch.zeros(size))
        for name, size in zeros.items()
    }
    whole = replace(config, use_qkv_bias=True, use_attention_projection_bias=True, use_prediction_bias=True)
    return replace(checkpoint, config=whole, weights={**checkpoint.weights, **weights})


def without_word_head(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint without its head of masked words, where that has no layer before the word logits.

    transformers has no such head; encoder, pooler and other heads are as near as its models come.
    """
    config = checkpoint.expect_config()
    if config.use_cls_layer or not _has_heads(checkpoint):
        return checkpoint
    weights = {name: value for name, value in checkpoint.weights.items() if not name.startswith(_WORD_HEAD)}
    return replace(
        checkpoint, config=replace(config, use_cls_layer=True, use_prediction_bias=True), weights=weights
    )


def told(checkpoint: Checkpoint, to: str = "") -> str:
    """What the form ``to`` has otherwise than the model, for a message, or empty where nothing is."""
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
        shapes = [f"{name} {str(value).lower()}" for name, value in shape_keys(config).items()]
        if shapes:
            said += f"; bert_config.json says {' and '.join(shapes)}, which Google's program does not know"
    return said


def _has_heads(checkpoint: Checkpoint) -> bool:
    return any(name.startswith("cls.") for name in checkpoint.weights)
