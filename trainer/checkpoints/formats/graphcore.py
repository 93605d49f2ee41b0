"""Translating tensors of Graphcore's programs to the names and shapes of other programs.

The PyTorch programs write Hugging Face's format, but their SQuAD program splits the word embeddings into
several tensors. The TensorFlow 1 programs have other names for the attention's output projection and the
norms. They store query, key and value as a single variable with concatenated columns (graphcore/examples,
Models/modeling_ipu.py).
"""

import re

import torch

from bertdata.errors import DataError
from trainer.checkpoints.any_checkpoint import Stored, StoredTensor

_PIECE = re.compile(r"(.*word_embeddings)\.split_embeddings\.([0-9]{1,9})\.weight")
_JOINED = re.compile(r"(bert/encoder/layer_[0-9]+/attention/self)/qkv_(weight|bias)")
_THIRDS = ("query", "key", "value")
_KINDS = {"weight": "kernel", "bias": "bias"}
_EXCHANGED = {"/attention/projection/": "/attention/output/", "/GroupNorm/": "/LayerNorm/"}


def join_embeddings(tensors: Stored, path: str) -> dict[str, StoredTensor]:
    """Return the tensors with the pieces of the word embeddings concatenated, in the order of their numbers.

    DataError if the pieces have rows of different sizes.
    """
    found, pieces = dict[str, StoredTensor](), dict[str, dict[int, StoredTensor]]()
    for name, tensor in tensors.items():
        if piece := _PIECE.fullmatch(name):
            pieces.setdefault(f"{piece[1]}.weight", {})[int(piece[2])] = tensor
        else:
            found[name] = tensor
    for name, parts in pieces.items():
        ordered = [parts[number] for number in sorted(parts)]
        if any(len(part.shape) != 2 or part.shape[1] != ordered[0].shape[1] for part in ordered):
            shapes = [list(part.shape) for part in ordered[:3]]
            raise DataError(f"{path}: {name} is in pieces of shapes {shapes}, expected rows of one size")
        found[name] = _join_rows(ordered)
    return found


def _join_rows(parts: list[StoredTensor]) -> StoredTensor:
    """Return a tensor that concatenates the rows of the pieces when it is read."""
    rows = sum(part.shape[0] for part in parts)
    return StoredTensor((rows, *parts[0].shape[1:]), lambda: torch.cat([part.load() for part in parts]))


def find_google_names(variable: str) -> list[str]:
    """Translate the name of a variable of Graphcore's programs to Google's names.

    The result has three names if the variable has the weights of query, key and value together, otherwise
    one.
    """
    if joined := _JOINED.fullmatch(variable):
        return [f"{joined[1]}/{third}/{_KINDS[joined[2]]}" for third in _THIRDS]
    for graphcores, googles in _EXCHANGED.items():
        variable = variable.replace(graphcores, googles)
    return [f"bert/{variable}" if variable.startswith("pooler/") else variable]


def take_query_key_or_value(tensor: StoredTensor, number: int) -> StoredTensor:
    """Return the columns of query (0), key (1) or value (2) from a variable that has all three."""
    width = tensor.shape[-1] // len(_THIRDS)
    first = number * width
    return tensor.changed((*tensor.shape[:-1], width), lambda whole: whole[..., first : first + width])
