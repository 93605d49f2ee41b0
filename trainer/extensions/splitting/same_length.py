"""Micro-batches padded to the longest of them, for a pipeline whose stages hand on tensors of one shape."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.nn import functional as F

from trainer.data.batches import Batch, FlatBatch, Prepare


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
            batch = prepare(_longer(batch, more) if isinstance(batch, FlatBatch) else _wider(batch, more))
        padded.append(batch)
    return padded


def _longer(batch: FlatBatch, more: int) -> FlatBatch:
    """With so many tokens of padding, in as few sequences as have room for them, of near equal length."""
    tokens, parts = len(batch.input_ids), -(-more // batch.longest)
    ends = tokens + more * torch.arange(1, parts + 1, dtype=torch.int32) // parts
    sizes = torch.cat([torch.tensor([tokens], dtype=torch.int32), ends]).diff()
    positions = [torch.arange(size, dtype=torch.int32) for size in sizes.tolist()]
    return replace(
        batch,
        input_ids=F.pad(batch.input_ids, (0, more)),
        token_type_ids=F.pad(batch.token_type_ids, (0, more)),
        position_ids=torch.cat([batch.position_ids, *positions]),
        ends=torch.cat([batch.ends, ends.to(torch.int32)]),
    )


def _wider(batch: Any, more: int) -> Batch:
    """With rows (``trainer.extensions.loading.row_batches``) that are so many positions wider."""
    positions = batch.position_ids
    return replace(
        batch,
        input_ids=F.pad(batch.input_ids, (0, more)),
        token_type_ids=F.pad(batch.token_type_ids, (0, more)),
        attention_mask=F.pad(batch.attention_mask, (0, more)),
        position_ids=None if positions is None else F.pad(positions, (0, more)),
    )
