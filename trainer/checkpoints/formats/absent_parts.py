"""Parts that models of Graphcore's programs may lack, and what stands for them in other programs.

A missing bias is a bias of zeros, exactly. A missing dense layer before the word logits is nothing that the
layer of other programs, with its activation and norm, could compute.
"""

from dataclasses import replace

import torch

from bertdata.errors import SettingsError
from trainer.checkpoints.absent_parts import BIASES, missing_biases
from trainer.checkpoints.any_checkpoint import DECODER, Checkpoint, StoredTensor
from trainer.config.modernbert import ModernBertConfig

TRANSFORMERS = "transformers"
"""The program whose models may have a decoder of their own."""


def completed(checkpoint: Checkpoint, program: str) -> Checkpoint:
    """The checkpoint with zeros for the biases that its model lacks, as other programs need them.

    SettingsError for a model that the program does not have.
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
    if config.megatron_residual_connection:
        found = "megatron_residual_connection is true"
        raise SettingsError(f"{checkpoint.path}: {found}: {program} has no such model")
    heads = _has_heads(checkpoint)
    if heads and not config.use_cls_layer:
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


def told(checkpoint: Checkpoint) -> str:
    """The biases that ``completed`` adds, for a message, or empty where nothing is missing."""
    config = checkpoint.expect_config()
    if not config.has_biases:
        return ""
    keys = [*BIASES, "use_prediction_bias"] if _has_heads(checkpoint) else [*BIASES]
    names = [name for name in keys if not getattr(config, name)]
    return f", zeros for its missing biases (false: {', '.join(names)})" if names else ""


def _has_heads(checkpoint: Checkpoint) -> bool:
    return any(name.startswith("cls.") for name in checkpoint.weights)
