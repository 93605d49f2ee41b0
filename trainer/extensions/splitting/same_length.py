"""Micro-batches padded to the longest of them, for a pipeline whose stages hand on tensors of one shape."""

from collections.abc import Sequence

import torch
from torch.nn import functional as F

from trainer.data.batches import Batch, FlatBatch, Prepare

_OF_TOKENS = ("input_ids", "token_type_ids", "attention_mask", "position_ids")
"""The tensors that have a value for each token."""


def token_rows(batch: Batch) -> int:
    """Tokens of the batch with its padding: rows of the model's matrices."""
    return batch.input_ids.numel()


def with_same_length(batches: Sequence[Batch], prepare: Prepare = lambda batch: batch) -> list[Batch]:
    """The batches padded to the longest one's number of tokens. Batches of that length are unchanged.

    Batches must be of one form and, if they are rows, of as many rows. prepare: done to those that get more
    padding. What the model computes for the other tokens does not depend on it.
    """
    longest = max(batch.input_ids.shape[-1] for batch in batches)
    padded = []
    for batch in batches:
        if more := longest - batch.input_ids.shape[-1]:
            batch = prepare(_longer(batch, more))
        padded.append(batch)
    return padded


def _longer(batch: Batch, more: int) -> Batch:
    """With so many positions of padding more, in each row of padded rows.

    Those of a flat batch are in as few sequences as have room for them, of near equal length.
    """
    tensors = batch.tensors()
    padded = {name: F.pad(tensors[name], (0, more)) for name in _OF_TOKENS if name in tensors}
    if isinstance(batch, FlatBatch):
        tokens, parts = len(batch.input_ids), -(-more // batch.longest)
        ends = tokens + more * torch.arange(1, parts + 1, dtype=torch.int32) // parts
        sizes = torch.cat([torch.tensor([tokens], dtype=torch.int32), ends]).diff()
        positions = [torch.arange(size, dtype=torch.int32) for size in sizes.tolist()]
        padded["position_ids"] = torch.cat([batch.position_ids, *positions])
        padded["ends"] = torch.cat([batch.ends, ends.to(torch.int32)])
    return batch.changed(**padded)
