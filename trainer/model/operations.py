"""Real tokens of a batch, and the floating-point operations that the model makes for them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bertdata.examples.columns import Array
from trainer.config.model import ModelConfig
from trainer.data.batches import Batch

PASSES = 3.0
"""Operations of forward and backward pass over those of the forward pass."""


class Counted(NamedTuple):
    """Real tokens of micro-batches, and the operations of their matrix products, padding left out."""

    tokens: int
    operations: float


def count(batches: Sequence[Batch], shape: ModelConfig) -> Counted:
    """The tokens and operations of micro-batches in host memory, forward and backward."""
    tokens, operations = 0, 0
    for batch in batches:
        lengths = batch.lengths()
        masks = int(np.count_nonzero(batch.masked_lm_weights.numpy()))
        tokens += int(lengths.sum())
        operations += forward_operations(lengths, masks, shape)
    return Counted(tokens, PASSES * operations)


def forward_operations(lengths: Array, masks: int, shape: ModelConfig) -> int:
    """Operations of one forward pass: two for each multiplication with an addition.

    lengths: int64. masks: positions at which the masked-word head computes logits. The heads are those of
    pre-training; those of other tasks are smaller than a thousandth of the whole.
    """
    width, inner = shape.hidden_size, shape.intermediate_size
    tokens, sequences = int(lengths.sum()), int(np.count_nonzero(lengths))
    layer = tokens * (4 * width * width + 2 * width * inner)
    attention = 2 * width * int(lengths @ lengths)
    heads = masks * width * (width + shape.vocab_size) + sequences * width * (width + 2)
    return 2 * (shape.num_hidden_layers * (layer + attention) + heads)
