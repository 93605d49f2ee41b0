"""The rows of a batch's tokens in the (tokens, width) matrices of the model."""

import torch
from torch import Tensor

from trainer.data.batches import Batch, FlatBatch, RowBatch


def positions_of(batch: Batch) -> Tensor:
    """(tokens,): each token's position in its sequence."""
    positions = batch.position_ids
    if isinstance(batch, FlatBatch):
        return batch.position_ids
    if positions is None:
        positions = torch.arange(batch.input_ids.shape[1], device=batch.input_ids.device)
    return positions.expand(batch.input_ids.shape).reshape(-1)


def first_rows(batch: Batch) -> Tensor:
    """(B,), of packed rows (B * K,): the row of each sequence's first token."""
    if isinstance(batch, FlatBatch):
        return batch.first_rows
    if batch.next_sentence_positions is None:
        return _starts(batch)
    return (batch.next_sentence_positions + _starts(batch)[:, None]).reshape(-1)


def masked_rows(batch: Batch) -> Tensor:
    """(M,): the row of each masked slot, used or not; M is B * P for padded sequences."""
    if isinstance(batch, FlatBatch):
        return batch.masked_lm_rows
    return (batch.masked_lm_positions + _starts(batch)[:, None]).reshape(-1)


def _starts(batch: RowBatch) -> Tensor:
    """(B,): the row of each padded row's first position."""
    size, length = batch.input_ids.shape
    return torch.arange(size, device=batch.input_ids.device) * length
