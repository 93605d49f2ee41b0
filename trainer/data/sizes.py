"""Sizes of a dataset's examples: tokens, and masked slots a token."""

from dataclasses import dataclass, replace

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.columns import Array, lengths
from trainer.data.dynamic_masks import UnmaskedData

_EXAMPLES = 4096
_LENGTHS = 1 << 17
_SHARDS = 16


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
    """The sizes of a sample of the dataset, the same on every worker.

    Tokens are those of shards spread over the dataset where it has lengths, else, as masks always, those of
    the first examples, decoded.
    """
    if isinstance(data, UnmaskedData):
        data = data.sample()
    tokens, masks, seen = [], [], 0
    for batch in (batch for shard in data.shards for batch in data.batches(shard)):
        tokens.append(lengths(batch.ends))
        masks.append(lengths(batch.mask_ends) if isinstance(batch, BertBatch) else np.zeros(len(batch)))
        seen += len(batch)
        if seen >= _EXAMPLES:
            break
    found = example_sizes(np.concatenate(tokens), np.concatenate(masks))
    return replace(found, lengths=_spread_lengths(data)) if data.has_lengths else found


def _spread_lengths(data: OpenedDataset) -> Array:
    """The tokens of examples of a few shards, each an equal way behind the one before."""
    used = [shard for shard in data.shards if shard.examples]
    chosen = used[:: -(-len(used) // _SHARDS)]
    each = -(-_LENGTHS // len(chosen))
    return np.concatenate([np.asarray(data.lengths(shard)[:each]) for shard in chosen])


def example_sizes(tokens: Array, masks: Array) -> ExampleSizes:
    """The sizes of examples with so many tokens and masked slots each."""
    share = masks.sum() / tokens.sum()
    return ExampleSizes(
        lengths=tokens,
        masks_per_token=float(share),
        deviation=float(np.sqrt(np.mean((masks - share * tokens) ** 2))),
    )
