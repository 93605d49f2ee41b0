"""The order in which fairseq sorts examples, and its batches with a fixed number of examples.

Source: fairseq/tasks/masked_lm.py, data/sort_dataset.py, data/iterators.py. Needs NumPy when it is imported.
"""

from collections.abc import Sequence

import numpy as np

from bertdata.errors import SettingsError
from bertdata.examples.columns import Array
from bertdata.examples.fairseq.streams import TwisterStream


def order_by_length(lengths: Sequence[int] | Array, seed: int) -> Array:
    """Return the examples' numbers, int64 (N,), sorted by length. Equally long examples are in random order.

    lengths: number of ids of each example.
    seed: fairseq's ``--seed``, 0 to 2**32 - 1.
    """
    permutation = np.array(TwisterStream(_check_seed(seed)).permutation(len(lengths)))
    order: Array = np.lexsort((permutation, np.asarray(lengths))).astype(np.int64)
    return order


def fairseq_batches(
    lengths: Sequence[int] | Array,
    *,
    seed: int,
    epoch: int,
    batch_size: int,
    rank: int = 0,
    world: int = 1,
) -> list[Array]:
    """Return the batches of one rank in an epoch. Each batch is an array of example numbers.

    The examples are ordered by ``order_by_length``, and each batch is a run of ``batch_size`` of them. The
    batches are shuffled with the seed ``seed + epoch``. Batch i then goes to the rank with the number i
    modulo ``world``. If the batches do not divide evenly, the last ranks get an empty batch at the end, so
    that all ranks have equally many.

    lengths: number of ids of each example.
    epoch: number of the epoch, from 1.
    batch_size: number of examples in a batch. It is below 8 or a multiple of 8, as fairseq requires.
    rank: number of this rank (process of distributed training), from 0.
    world: number of ranks.
    """
    if batch_size < 1 or (batch_size > 8 and batch_size % 8):
        raise SettingsError(f"batch_size is {batch_size}, expected 1 to 8, or a multiple of 8")
    if not 0 <= rank < world:
        raise SettingsError(f"rank is {rank}, expected 0 to {world - 1}")
    order = order_by_length(lengths, seed)
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    shuffled = [
        batches[place] for place in TwisterStream(_check_seed(seed + epoch)).permutation(len(batches))
    ]
    # For example, 5 batches for 2 ranks need one empty batch more. Rank 0 gets batches 0, 2 and 4. Rank 1
    # gets batches 1 and 3 and the empty batch.
    shuffled += [order[:0]] * (-len(shuffled) % world)
    return shuffled[rank::world]


def _check_seed(seed: int) -> int:
    """Return the seed if it has at most 32 bits. Otherwise raise SettingsError."""
    if not 0 <= seed < 1 << 32:
        raise SettingsError(f"the seed of an order is {seed}, expected 0 to {(1 << 32) - 1}")
    return seed
