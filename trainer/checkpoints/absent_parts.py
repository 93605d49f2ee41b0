"""Parts that a model may lack: biases, and the dense layer before the word logits."""

from collections.abc import Iterable

from bertdata.errors import DataError
from trainer.checkpoints.any_checkpoint import WORD_BIAS, Stored, StoredTensor
from trainer.config.model import ModelConfig

_TRANSFORM = "cls.predictions.transform."
BIASES = {
    "use_qkv_bias": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "use_attention_projection_bias": ("attention.output.dense",),
}
"""Layers that lack a bias if a key of the model configuration is false, by this key."""


def list_missing_biases(config: ModelConfig, heads: bool) -> dict[str, int]:
    """Return the name and number of values of each bias that a BERT has and this model lacks.

    heads: whether the model has the pre-training heads.
    """
    found = {
        f"bert.encoder.layer.{layer}.{part}.bias": config.hidden_size
        for layer in range(config.num_hidden_layers)
        for key, parts in BIASES.items()
        if not getattr(config, key)
        for part in parts
    }
    if heads and not config.use_prediction_bias:
        found[WORD_BIAS] = config.vocab_size
    return found


def drop_zero_biases(found: Stored, config: ModelConfig, path: str) -> dict[str, StoredTensor]:
    """Remove the biases that the model does not have from a checkpoint's tensors. Return the tensors that are
    not such biases.

    A model without a bias computes the same as a model whose bias is zero. DataError for a bias with other
    values.
    """
    absent = list_missing_biases(config, heads=True)
    for name in absent:
        if name in found and found[name].read().any():
            key = _find_bias_key(name)
            raise DataError(f"{path}: {name} is not zero, and the model has no such bias; give {key} true")
    return {name: tensor for name, tensor in found.items() if name not in absent}


def check_transform(found: Iterable[str], config: ModelConfig, path: str) -> None:
    """Raise DataError if the checkpoint has a dense layer before the word logits but the model has none."""
    there = any(name.startswith(_TRANSFORM) for name in found)
    if there and not config.use_cls_layer:
        raise DataError(
            f"{path}: has the layer before the word logits ({_TRANSFORM[:-1]}), and the model has no such "
            "layer; give use_cls_layer true"
        )


def advise_on_biases(lost: Iterable[str]) -> str:
    """Return advice for an error message about missing tensors: which keys describe a model without these
    biases.

    Return "" if any of the tensors is not a bias that a model may lack.
    """
    keys = {name: _find_bias_key(name) for name in lost}
    if not keys or not all(keys.values()):
        return ""
    return f"; give {' and '.join(f'{key} false' for key in dict.fromkeys(keys.values()))}"


def _find_bias_key(name: str) -> str | None:
    """Return the key that says whether the model has this bias. None for a tensor that is no such bias."""
    if name == WORD_BIAS:
        return "use_prediction_bias"
    found = (key for key, parts in BIASES.items() if any(name.endswith(f".{part}.bias") for part in parts))
    return next(found, None)
