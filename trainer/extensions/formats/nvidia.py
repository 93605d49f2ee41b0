"""NVIDIA's and Habana's PyTorch checkpoints: weights under "model", moments under "optimizer"."""

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import torch
from torch import Tensor

from bertdata.errors import DataError, StorageError
from bertdata.io import storage
from trainer.checkpoint.stored import (
    HEADS,
    MEAN,
    MOST_UPDATES,
    SQUARE,
    WORDS,
    Checkpoint,
    Stored,
    StoredTensor,
    padded,
)
from trainer.extensions.formats.absent_parts import completed
from trainer.extensions.formats.config_file import read_config, write_bert_config
from trainer.extensions.formats.graphcore import joined
from trainer.extensions.formats.names import from_pytorch, to_nvidia
from trainer.extensions.formats.pytorch_file import check_plain, read_torch, tensors_of

_NO_DECAY = ("bias", "gamma", "beta", "LayerNorm")
_DECAY = 0.01
_TIED = "cls.predictions.decoder.weight"
_COUNTS = ("step", "steps")


def read_nvidia(path: str, model_config: str | None = None, kind: str = "nvidia") -> Checkpoint:
    """The checkpoint of a file. kind: "nvidia" (GELU in its tanh form) or "habana" (the exact one).

    model_config: a file in place of the bert_config.json beside it.
    """
    values = read_torch(path)
    is_whole = isinstance(values, Mapping) and isinstance(values.get("model"), Mapping)
    weights = from_pytorch_names(tensors_of(values["model"] if is_whole else values, path), path)
    moments, updates = _read_moments(values.get("optimizer") if is_whole else None, weights, path)
    return Checkpoint(
        kind=kind,
        path=path,
        config=read_config(storage.parent(path), model_config, tanh=kind == "nvidia"),
        weights=weights,
        moments=moments,
        updates=updates,
        optimiser="lamb-nvidia" if moments else None,
    )


def from_pytorch_names(tensors: Stored, path: str) -> dict[str, StoredTensor]:
    """The tensors under this model's names, without copies of tied ones, in the same order."""
    return {ours: tensor for name, tensor in joined(tensors, path).items() if (ours := from_pytorch(name))}


def _read_moments(optimiser: Any, weights: Stored, path: str) -> tuple[dict[str, StoredTensor], int | None]:
    """(moments, updates made) of an optimiser's state, or empty where the state is not of these weights.

    NVIDIA's and Habana's programs number the weights with decay first, in the order of the model.
    DataError for moments or counts that are of these weights, and no numbers.
    """
    names = [name for part in split_by_decay(weights) for name in part]
    found = _states_of(optimiser)
    if found is None or len(found) != len(names):
        return {}, None
    moments = {}
    for name, state in zip(names, found, strict=True):
        for kind in (MEAN, SQUARE):
            moment = state.get(kind)
            if not isinstance(moment, Tensor):
                return {}, None
            check_plain(moment, f"{kind} of {name}", path)
            if tuple(moment.shape) != weights[name].shape:
                return {}, None
            moments[f"{kind}/{name}"] = StoredTensor.of(moment)
    return moments, _updates((optimiser["param_groups"][0], found[0]), path) if found else None


def _states_of(optimiser: Any) -> list[Mapping[str, Any]] | None:
    """The state of each weight in the order of an optimiser's groups, or None for another form of state."""
    if not isinstance(optimiser, Mapping):
        return None
    states, groups = optimiser.get("state"), optimiser.get("param_groups")
    if not isinstance(states, Mapping) or not isinstance(groups, list) or not groups:
        return None
    found = []
    for group in groups:
        numbers = group.get("params") if isinstance(group, Mapping) else None
        if not isinstance(numbers, list):
            return None
        for number in numbers:
            state = states.get(number) if isinstance(number, int) else None
            if not isinstance(state, Mapping):
                return None
            found.append(state)
    return found


def _updates(places: Sequence[Mapping[str, Any]], path: str) -> int | None:
    """The updates that an optimiser counted, in its group or in a weight's state. DataError for no number."""
    counts = [place[name] for place in places for name in _COUNTS if name in place]
    if not counts:
        return None
    count = counts[0]
    if isinstance(count, Tensor):
        check_plain(count, "the number of updates", path)
        count = count.item() if count.numel() == 1 else count.tolist()
    if isinstance(count, bool) or not isinstance(count, int | float) or not 0 <= count <= MOST_UPDATES:
        raise DataError(f"{path}: the number of updates is {count!r:.40}, expected a number from 0")
    return int(count)


def split_by_decay(weights: Stored) -> tuple[list[str], list[str]]:
    """The names of the weights that decay, and of those that do not, each in the order of the model."""
    decays = [name for name in weights if not any(part in name for part in _NO_DECAY)]
    rest = [name for name in weights if any(part in name for part in _NO_DECAY)]
    return decays, rest


def write_nvidia(checkpoint: Checkpoint, directory: str) -> str:
    """Write ckpt_N.pt and bert_config.json, the vocabulary padded as the program does. Returns the path."""
    checkpoint = completed(checkpoint, "NVIDIA's BERT")
    config = checkpoint.expect_config()
    weights = in_order(padded(checkpoint.weights, config))
    values = {to_nvidia(name): tensor.read() for name, tensor in weights.items()}
    if WORDS in values and any(name.startswith("cls.predictions.") for name in values):
        values[_TIED] = values[WORDS]
    content: dict[str, Any] = {"model": values}
    moments = padded(checkpoint.moments, config)
    if moments:
        content["optimizer"] = _optimiser(weights, moments, checkpoint)
    path = storage.join(directory, f"ckpt_{checkpoint.updates or 0}.pt")
    storage.make_directory(directory)
    with storage.open_output(path) as file:
        _save(content, file, path)
    write_bert_config(config, directory)
    return path


def _save(content: dict[str, Any], file: BinaryIO, path: str) -> None:
    """Write torch's archive. StorageError where the file takes no more."""
    try:
        torch.save(content, file)
    except RuntimeError as error:
        if isinstance(error.__context__, StorageError):
            raise error.__context__ from None
        reason = str(error).split("\n")[0]
        raise StorageError(f"{path}: cannot be written: {reason}") from None


def _optimiser(weights: Stored, moments: Stored, checkpoint: Checkpoint) -> dict[str, Any]:
    """The state of the program's LAMB: moments by number, two groups."""
    states: dict[int, dict[str, Any]] = {}
    groups = []
    for names, decay in zip(split_by_decay(weights), (_DECAY, 0.0), strict=True):
        numbers = list(range(len(states), len(states) + len(names)))
        for number, name in zip(numbers, names, strict=True):
            found = {kind: moments.get(f"{kind}/{name}") for kind in (MEAN, SQUARE)}
            states[number] = {
                kind: torch.zeros(weights[name].shape) if moment is None else moment.read()
                for kind, moment in found.items()
            }
        groups.append(
            {
                "params": numbers,
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


def in_order(weights: Stored) -> dict[str, StoredTensor]:
    """The weights in the order of the program's model, which numbers its optimiser's state."""
    return dict(sorted(weights.items(), key=lambda item: _place(item[0])))


_PARTS = (
    *("bert.embeddings.word", "bert.embeddings.position", "bert.embeddings.token", "bert.embeddings.Layer"),
    *("bert.encoder.layer.", "bert.pooler.", "cls.predictions.bias", "cls.predictions.transform."),
    *("cls.seq_relationship.", *HEADS[1:]),
)
_LAYER = (
    *("attention.self.query.", "attention.self.key.", "attention.self.value.", "attention.output.dense."),
    *("attention.output.LayerNorm.", "intermediate.", "output.dense.", "output.LayerNorm.", "dense.", ""),
)


def _place(name: str) -> tuple[int, int, int, int]:
    """(part, layer, part of the layer, 0 for the weight and 1 for the bias) of a tensor."""
    part = next(number for number, beginning in enumerate(_PARTS) if name.startswith(beginning))
    rest = name.removeprefix(_PARTS[part])
    layer = 0
    if _PARTS[part] == "bert.encoder.layer.":
        number, _, rest = rest.partition(".")
        layer = int(number)
    inner = next(number for number, beginning in enumerate(_LAYER) if rest.startswith(beginning))
    return part, layer, inner, int(name.endswith(".bias"))
