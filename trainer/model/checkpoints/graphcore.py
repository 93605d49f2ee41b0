"""Graphcore's checkpoints: Hugging Face's form, with the word embeddings in pieces while SQuAD trains."""

import re

import torch

from trainer.model.checkpoints.checkpoint import Stored, StoredTensor

_PIECE = re.compile(r"(.*word_embeddings)\.split_embeddings\.(\d+)\.weight")


def joined(tensors: Stored) -> dict[str, StoredTensor]:
    """The tensors with the pieces of the word embeddings joined by rows, in the order of their numbers."""
    found, pieces = dict[str, StoredTensor](), dict[str, dict[int, StoredTensor]]()
    for name, tensor in tensors.items():
        if piece := _PIECE.fullmatch(name):
            pieces.setdefault(f"{piece[1]}.weight", {})[int(piece[2])] = tensor
        else:
            found[name] = tensor
    for name, parts in pieces.items():
        found[name] = _join([parts[number] for number in sorted(parts)])
    return found


def _join(parts: list[StoredTensor]) -> StoredTensor:
    rows = sum(part.shape[0] for part in parts)
    return StoredTensor((rows, *parts[0].shape[1:]), lambda: torch.cat([part.load() for part in parts]))
