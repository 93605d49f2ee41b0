"""Parts of the model that its configuration may leave out: biases, and the layer before the word logits."""

from collections.abc import Iterable

from bertdata.errors import DataError
from trainer.checkpoints.any_checkpoint import WORD_BIAS, Stored, StoredTensor
from trainer.config.model import ModelConfig

_TRANSFORM = "cls.predictions.transform."
BIASES = {
    "use_qkv_bias": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "use_attention_projection_bias": ("attention.output.dense",),
}


def missing_biases(config: ModelConfig, heads: bool) -> dict[str, int]:
    """Name and size of each bias that the model lacks. heads: those of pre-training count too."""
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


def without_zero_biases(found: Stored, config: ModelConfig, path: str) -> dict[str, StoredTensor]:
    """The tensors without biases of zeros that the model lacks. DataError names one that is not zero."""
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
    """The keys of a model without the missing biases, for an error, or empty if others are missing."""
    keys = {name: _key_of(name) for name in lost}
    if not keys or not all(keys.values()):
        return ""
    return f"; give {' and '.join(f'{key} false' for key in dict.fromkeys(keys.values()))}"


def _key_of(name: str) -> str | None:
    """The key of a bias that a model may lack, or None for another tensor."""
    if name == WORD_BIAS:
        return "use_prediction_bias"
    found = (key for key, parts in BIASES.items() if any(name.endswith(f".{part}.bias") for part in parts))
    return next(found, None)
