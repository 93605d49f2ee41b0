"""Random examples of chosen sizes as NumPy columns, for tests of the trainer's batches."""

from collections.abc import Sequence

import numpy as np

from bertdata.examples.bert.batch import BertBatch


def example_batch(sizes: Sequence[tuple[int, int]], seed: int = 0) -> BertBatch:
    """Return random examples. Ids are at least 1, so that no token looks like padding.

    sizes: (tokens, masked slots) of each example.
    """
    random = np.random.default_rng(seed)
    tokens, masks = (np.array(column) for column in zip(*sizes, strict=True))
    return BertBatch(
        ids=random.integers(1, 60_000, tokens.sum()).astype(np.uint16),
        ends=np.cumsum(tokens).astype(np.uint32),
        first_lengths=random.integers(1, tokens + 1).astype(np.uint32),
        positions=np.concatenate([random.integers(0, t, m) for t, m in sizes]).astype(np.uint16),
        labels=random.integers(1, 60_000, masks.sum()).astype(np.uint16),
        mask_ends=np.cumsum(masks).astype(np.uint32),
        next_labels=random.integers(0, 2, len(tokens)).astype(np.uint8),
    )
