"""Batches of a single sequence, with which a user tries a model."""

from collections.abc import Sequence

import torch

from trainer.data.batches import FlatBatch


def make_single_batch(
    ids: Sequence[int], *, first_length: int | None = None, masks: Sequence[int] = ()
) -> FlatBatch:
    """Return a flat batch of a single sequence.

    ids: token ids of the sequence.
    first_length: number of ids in segment 0. None: all ids.
    masks: positions for which the model predicts words.
    """
    types = torch.zeros(len(ids), dtype=torch.int32)
    if first_length is not None:
        types[first_length:] = 1
    zero = torch.zeros(1, dtype=torch.int32)
    return FlatBatch(
        input_ids=torch.tensor(ids, dtype=torch.int32),
        token_type_ids=types,
        position_ids=torch.arange(len(ids), dtype=torch.int32),
        ends=torch.tensor([0, len(ids)], dtype=torch.int32),
        first_rows=zero,
        masked_lm_rows=torch.tensor(masks, dtype=torch.int32),
        masked_lm_ids=torch.zeros(len(masks), dtype=torch.int32),
        masked_lm_weights=torch.ones(len(masks)),
        next_sentence_labels=zero,
        longest=len(ids),
        tokens=len(ids),
    )
