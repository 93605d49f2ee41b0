"""NVIDIA's and Habana's PyTorch checkpoints: weights under "model", moments under "optimizer"."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, BinaryIO

import torch
from torch import Tensor

from bertdata.errors import DataError, StorageError
from bertdata.io import storage
from trainer.checkpoints.any_checkpoint import (
    DECODER,
    HEADS,
    MEAN,
    MOST_UPDATES,
    SQUARE,
    WORDS,
    Checkpoint,
    Stored,
    StoredTensor,
    pad_vocabulary,
)
from trainer.checkpoints.formats.absent_parts import add_missing_biases
from trainer.checkpoints.formats.config_file import read_description, write_bert_config
from trainer.checkpoints.formats.graphcore import join_embeddings
from trainer.checkpoints.formats.names import from_pytorch, to_nvidia
from trainer.checkpoints.formats.output_layer import resolve_output_layer
from trainer.checkpoints.formats.pytorch_file import check_plain, collect_tensors, read_torch
from trainer.checkpoints.formats.wrapped_names import unwrap_names
from trainer.config.model import ModelConfig
from trainer.model.headed import BertForPreTraining

_NO_DECAY = ("bias", "gamma", "beta", "LayerNorm")
_DECAY = 0.01
_COUNTS = ("step", "steps")


def read_nvidia(path: str, model_config: str | None = None, kind: str = "nvidia") -> Checkpoint:
    """Read the checkpoint of NVIDIA's or Habana's program in a file.

    model_config: model file to read instead of the bert_config.json next to the checkpoint.
    kind: "nvidia" (GELU in its tanh form) or "habana" (exact GELU).
    """
    values = read_torch(path)
    is_whole = isinstance(values, Mapping) and isinstance(values.get("model"), Mapping)
    weights = from_pytorch_names(collect_tensors(values["model"] if is_whole else values, path), path)
    found = read_description(storage.get_parent(path), model_config, tanh=kind == "nvidia")
    checkpoint = resolve_output_layer(
        Checkpoint(
            kind=kind,
            path=path,
            config=found.config,
            weights=weights,
            warnings=found.file.warnings,
        ),
        is_tied=True,
    )
    moments, updates = _read_moments(values.get("optimizer") if is_whole else None, checkpoint.weights, path)
    optimiser = "lamb-nvidia" if moments else None
    return replace(checkpoint, moments=moments, updates=updates, optimiser=optimiser)


def from_pytorch_names(tensors: Stored, path: str) -> dict[str, StoredTensor]:
    """Return the tensors under this trainer's names, in the same order.

    If the file has a tensor under two names, the result has it under two names too.
    """
    plain = join_embeddings(unwrap_names(tensors, path), path)
    return {ours: tensor for name, tensor in plain.items() if (ours := from_pytorch(name))}


def _read_moments(optimiser: Any, weights: Stored, path: str) -> tuple[dict[str, StoredTensor], int | None]:
    """Return the moments and the number of updates in an optimiser's state.

    Return ({}, None) for a state in another form, or of an optimiser for other weights.

    DataError if a moment or an update count in the state is not a number.
    """
    # The optimiser numbers its weights by group, weights with decay first, each group in the order of the
    # model. So weight number i is the i-th of `names`.
    names = [name for part in split_by_decay(weights) for name in part]
    try:
        groups, by_number = optimiser["param_groups"], optimiser["state"]
        states = [by_number[number] for group in groups for number in group["params"]]
        found = {
            (kind, name): state[kind]
            for name, state in zip(names, states, strict=True)
            for kind in (MEAN, SQUARE)
        }
        counts = [place[name] for place in (groups[0], states[0]) for name in _COUNTS if name in place]
    except (TypeError, LookupError, ValueError):  # the state has another form, or belongs to other weights
        return {}, None
    moments = {}
    for (kind, name), moment in found.items():
        if not isinstance(moment, Tensor):
            return {}, None
        check_plain(moment, f"{kind} of {name}", path)
        if tuple(moment.shape) != weights[name].shape:
            return {}, None
        moments[f"{kind}/{name}"] = StoredTensor.of(moment)
    return moments, _read_update_count(counts[0], path) if counts else None


def _read_update_count(count: Any, path: str) -> int:
    """Return the number of updates in the optimiser's group or in a weight's state.

    DataError if the count is not a number.
    """
    if isinstance(count, Tensor):
        check_plain(count, "the number of updates", path)
        count = count.item() if count.numel() == 1 else count.tolist()
    if isinstance(count, bool) or not isinstance(count, int | float) or not 0 <= count <= MOST_UPDATES:
        raise DataError(f"{path}: the number of updates is {count!r:.40}, expected a number from 0")
    return int(count)


def split_by_decay(weights: Stored) -> tuple[list[str], list[str]]:
    """Return two lists: the names of weights with weight decay, and of weights without it.

    Both lists have the order of the model.
    """
    decays = [name for name in weights if not any(part in name for part in _NO_DECAY)]
    rest = [name for name in weights if any(part in name for part in _NO_DECAY)]
    return decays, rest


def write_nvidia(checkpoint: Checkpoint, directory: str) -> str:
    """Write ckpt_N.pt, where N is the number of updates, and bert_config.json. Return the path of the .pt
    file.

    The vocabulary is padded as in NVIDIA's program.
    """
    checkpoint = add_missing_biases(checkpoint, "NVIDIA's BERT")
    config = checkpoint.expect_config()
    weights = _order_weights(pad_vocabulary(checkpoint.weights, config), config)
    values = {to_nvidia(name): tensor.read() for name, tensor in weights.items()}
    if WORDS in values and any(name.startswith("cls.predictions.") for name in values):
        values[DECODER] = values[WORDS]
    content: dict[str, Any] = {"model": values}
    moments = pad_vocabulary(checkpoint.moments, config)
    if moments:
        content["optimizer"] = _make_optimiser_state(weights, moments, checkpoint)
    path = storage.join(directory, f"ckpt_{checkpoint.updates or 0}.pt")
    storage.make_directory(directory)
    with storage.open_output(path) as file:
        _save(content, file, path)
    write_bert_config(config, directory)
    return path


def _save(content: dict[str, Any], file: BinaryIO, path: str) -> None:
    """Write a file with torch.save. StorageError if it cannot be written."""
    try:
        torch.save(content, file)
    except RuntimeError as error:
        if isinstance(error.__context__, StorageError):
            raise error.__context__ from None
        reason = str(error).split("\n")[0]
        raise StorageError(f"{path}: cannot be written: {reason}") from None


def _make_optimiser_state(weights: Stored, moments: Stored, checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the state of the optimiser LAMB, in the form that NVIDIA's program reads.

    The state has the moments of each weight under the weight's number. It has two groups of weights, with and
    without weight decay.
    """
    states: dict[int, dict[str, Any]] = {}
    groups = []
    for names, decay in zip(split_by_decay(weights), (_DECAY, 0.0), strict=True):
        first = len(states)
        for number, name in enumerate(names, first):
            found = {kind: moments.get(f"{kind}/{name}") for kind in (MEAN, SQUARE)}
            states[number] = {
                kind: torch.zeros(weights[name].shape) if moment is None else moment.read()
                for kind, moment in found.items()
            }
        groups.append(
            {
                "params": list(range(first, len(states))),
                "weight_decay": decay,
                "lr": 0.0,
                "betas": checkpoint.betas,
                "eps": 1e-6,
                "bias_correction": True,
                "grad_averaging": True,
                "max_grad_norm": 1.0,
                "step": checkpoint.updates or 0,
            }
        )
    return {"state": states, "param_groups": groups}


def _order_weights(weights: Stored, config: ModelConfig) -> dict[str, StoredTensor]:
    """Sort the weights as in NVIDIA's model, because the optimiser's state refers to weights by their number.

    This is the order of this trainer's pre-training model, followed by the heads that it does not have.
    """
    with torch.device("meta"):
        names = [*BertForPreTraining(config).state_dict()]
    names += [f"{head}{end}" for head in HEADS[1:] for end in ("weight", "bias")]
    return {name: weights[name] for name in dict.fromkeys([*names, *weights]) if name in weights}
