"""Filling models with the tensors of checkpoints."""

from collections.abc import Mapping

import torch
from torch import Tensor

from bertdata.errors import DataError
from trainer.checkpoints.absent_parts import advise_on_biases, check_transform, drop_zero_biases
from trainer.checkpoints.any_checkpoint import OPTIONAL, Checkpoint, Stored, pad_vocabulary
from trainer.config.model import ModelConfig
from trainer.model.headed import HeadedBert


@torch.no_grad()
def fill_model(model: HeadedBert, checkpoint: Checkpoint) -> list[str]:
    """Copy the checkpoint's weights into the model, one at a time. Return the names of missing weights.

    If the checkpoint lacks a head or the pooler, that part of the model keeps its values. Heads of the
    checkpoint that the model lacks are ignored. DataError for any other tensor that is missing or unexpected,
    or whose shape is not the model's.
    """
    own = model.state_dict()
    found, missing = match_weights(own, model.config, checkpoint)
    for name, tensor in found.items():
        own[name].copy_(tensor.read())
    return missing


def match_weights(
    own: Mapping[str, Tensor], config: ModelConfig, checkpoint: Checkpoint
) -> tuple[Stored, list[str]]:
    """Return the checkpoint's tensor for each of the model's weights, and the names of missing weights.

    Rows of zeros are added to tensors with a row for each token, since the model's vocabulary is padded to a
    multiple of 8. DataError for the first tensor that is missing or unexpected, or whose shape is not the
    model's.

    own: the model's weights by name. Only their shapes are used.
    """
    found = drop_zero_biases(pad_vocabulary(checkpoint.weights, config), config, checkpoint.path)
    if any(name.startswith("cls.") for name in own):
        check_transform(found, config, checkpoint.path)
    # A checkpoint may have more heads than the model, for example when only its encoder is needed. Other
    # tensors that the model lacks are a sign that the checkpoint's model has another shape, which is an error
    # below.
    for name in [name for name in found if name.startswith(OPTIONAL) and name not in own]:
        del found[name]
    missing = [name for name in own if name not in found]
    lost = [name for name in missing if name.startswith("bert.") and not name.startswith(OPTIONAL)]
    extra = [name for name in found if name not in own]
    for word, names in (("lacks", lost), ("unexpected", extra)):
        if names:
            some = f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]
            wanted = advise_on_biases(lost) or "; expected a BERT of the configuration's depth"
            raise DataError(f"{checkpoint.path}: {word} {some}{wanted}")
    check_shapes(checkpoint.path, found, own)
    return found, missing


def match_moments(weights: Mapping[str, Tensor], config: ModelConfig, checkpoint: Checkpoint) -> Stored:
    """Return the checkpoint's optimiser moments for these weights, under names like
    exp_avg/bert.pooler.dense.bias.

    Rows of zeros are added to moments with a row for each token, since the model's vocabulary is padded to a
    multiple of 8. A moment is read from its file only when it is used. DataError for a moment whose shape is
    not that of its weight.
    """
    stored = pad_vocabulary(checkpoint.moments, config)
    owners = {key: weights[name] for key in stored if (name := key.partition("/")[2]) in weights}
    found = {key: stored[key] for key in owners}
    check_shapes(checkpoint.path, found, owners)
    return found


def check_shapes(path: str, found: Stored, own: Mapping[str, Tensor]) -> None:
    """Raise DataError for the first tensor whose shape differs from the model's."""
    for name, tensor in found.items():
        if tensor.shape != (wanted := tuple(own[name].shape)):
            raise DataError(f"{path}: {name} has shape {list(tensor.shape)}, expected {list(wanted)}")
