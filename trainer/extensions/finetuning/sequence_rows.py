"""The tokens of each sequence, cut out of a batch's."""

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from trainer.data.batches import Batch, FlatBatch

if TYPE_CHECKING:
    from trainer.extensions.loading.row_batches import RowBatch


def sequence_rows(tokens: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """(sequences, longest) true at the tokens of each sequence, and (sequences, longest, ...) its vectors.

    tokens: (tokens, ...) in the batch's order. Behind a sequence's end stand vectors of others.
    """
    if isinstance(batch, FlatBatch):
        count = len(batch)
        lengths = batch.ends[1 : count + 1] - batch.ends[:count]
        return _cut_out(tokens, batch.first_rows, lengths, batch.longest)
    return _of_rows(tokens, cast("RowBatch", batch))


def _of_rows(tokens: Tensor, batch: "RowBatch") -> tuple[Tensor, Tensor]:
    """As ``sequence_rows``, of padded rows."""
    if batch.next_sentence_positions is None:
        return batch.attention_mask.bool(), tokens.view(*batch.input_ids.shape, *tokens.shape[1:])
    lengths = _pack_lengths(batch, batch.next_sentence_positions)
    return _cut_out(tokens, batch.starts(), lengths, batch.most_tokens())


def _cut_out(tokens: Tensor, starts: Tensor, lengths: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """(sequences, longest) true at the tokens of each, and the vectors from its first token on."""
    places = torch.arange(longest, dtype=lengths.dtype, device=lengths.device)
    rows = (starts[:, None] + places).clamp(max=len(tokens) - 1)
    return places < lengths[:, None], tokens[rows]


def _pack_lengths(batch: "RowBatch", positions: Tensor) -> Tensor:
    """(B * K,): the tokens of each sequence of packed rows, whose attention mask numbers them from 1."""
    numbers = torch.arange(
        1, positions.shape[1] + 1, dtype=batch.attention_mask.dtype, device=positions.device
    )
    return (batch.attention_mask[:, None, :] == numbers[:, None]).sum(2).reshape(-1)
