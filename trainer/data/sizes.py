"""Sizes of a dataset's examples: tokens, and masked slots a token."""

from dataclasses import dataclass

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.columns import Array, lengths

_EXAMPLES = 8192


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ExampleSizes:
    """Sizes of a sample of examples.

    masks_per_token: masked slots of all over tokens of all.
    deviation: how far an example's masks are from that share of its tokens, as a standard deviation.
    """

    lengths: Array  # tokens of each example
    masks_per_token: float
    deviation: float


def sample_sizes(data: OpenedDataset) -> ExampleSizes:
    """The sizes of the dataset's first examples, decoded: the same on every worker."""
    tokens, masks, seen = [], [], 0
    for batch in (batch for shard in data.shards for batch in data.batches(shard)):
        assert isinstance(batch, BertBatch)
        tokens.append(lengths(batch.ends))
        masks.append(lengths(batch.mask_ends))
        seen += len(batch)
        if seen >= _EXAMPLES:
            break
    return example_sizes(np.concatenate(tokens), np.concatenate(masks))


def example_sizes(tokens: Array, masks: Array) -> ExampleSizes:
    """The sizes of examples with so many tokens and masked slots each."""
    share = masks.sum() / tokens.sum()
    return ExampleSizes(
        lengths=tokens,
        masks_per_token=float(share),
        deviation=float(np.sqrt(np.mean((masks - share * tokens) ** 2))),
    )
