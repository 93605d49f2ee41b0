"""Graphcore's checkpoints: Hugging Face's form, with the word embeddings in pieces while SQuAD trains."""

import re

import torch

from bertdata.errors import DataError
from trainer.checkpoint.stored import Stored, StoredTensor

_PIECE = re.compile(r"(.*word_embeddings)\.split_embeddings\.([0-9]{1,9})\.weight")


def joined(tensors: Stored, path: str) -> dict[str, StoredTensor]:
    """The tensors with the pieces of the word embeddings joined by rows, in the order of their numbers.

    DataError names the file where the pieces have rows of several sizes.
    """
    found, pieces = dict[str, StoredTensor](), dict[str, dict[int, StoredTensor]]()
    for name, tensor in tensors.items():
        if piece := _PIECE.fullmatch(name):
            pieces.setdefault(f"{piece[1]}.weight", {})[int(piece[2])] = tensor
        else:
            found[name] = tensor
    for name, parts in pieces.items():
        if (
            any(len(part.shape) != 2 for part in parts.values())
            or len({p.shape[1] for p in parts.values()}) > 1
        ):
            shapes = [list(parts[number].shape) for number in sorted(parts)[:3]]
            raise DataError(f"{path}: {name} is in pieces of shapes {shapes}, expected rows of one size")
        found[name] = _join([parts[number] for number in sorted(parts)])
    return found


def _join(parts: list[StoredTensor]) -> StoredTensor:
    rows = sum(part.shape[0] for part in parts)
    return StoredTensor((rows, *parts[0].shape[1:]), lambda: torch.cat([part.load() for part in parts]))
