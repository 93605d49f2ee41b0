"""Tokens and floating-point operations of a batch, counted for what exists and never for padding."""

from collections.abc import Sequence

from trainer.config.model import ModelConfig
from trainer.data.batches import Batch, FlatBatch


def lengths_of(batch: Batch) -> list[int]:
    """The tokens of each sequence."""
    if isinstance(batch, FlatBatch):
        return [int(length) for length in batch.ends.diff()[: len(batch)]]
    return [int(length) for length in batch.attention_mask.sum(1)]


def operations_of(batch: Batch, shape: ModelConfig) -> float:
    """Floating-point operations of the matrix products for real tokens and masks, forward and backward."""
    lengths = lengths_of(batch)
    masks = int(batch.masked_lm_weights.sum())
    return 3.0 * forward_operations(lengths, masks, shape)


def forward_operations(lengths: Sequence[int], masks: int, shape: ModelConfig) -> int:
    """Operations of one forward pass: two for each multiplication with an addition."""
    width, inner = shape.hidden_size, shape.intermediate_size
    tokens = sum(lengths)
    layer = tokens * (4 * width * width + 2 * width * inner)
    attention = 2 * width * sum(length * length for length in lengths)
    heads = masks * width * (width + shape.vocab_size) + len(lengths) * width * (width + 2)
    return 2 * (shape.num_hidden_layers * (layer + attention) + heads)
