"""fairseq's order of examples, and its batches with a fixed number of examples.

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
    """Return one rank's batches of an epoch, each an array of example numbers.

    A batch is ``batch_size`` neighbours in the order of ``order_by_length``. The batches are shuffled with
    seed + epoch and dealt to the ranks one by one. If the batches do not divide evenly, the last ranks get an
    empty batch at the end, so that all ranks have equally many.
    epoch: number of the epoch, from 1.
    batch_size: below 8 or a multiple of 8, as fairseq requires.
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
    # 5 batches, 2 ranks: one empty batch is added. Rank 0 has batches 0, 2, 4, rank 1 has 1, 3 and the
    # empty batch.
    shuffled += [order[:0]] * (-len(shuffled) % world)
    return shuffled[rank::world]


def _check_seed(seed: int) -> int:
    """Return the seed. SettingsError unless it has at most 32 bits."""
    if not 0 <= seed < 1 << 32:
        raise SettingsError(f"the seed of an order is {seed}, expected 0 to {(1 << 32) - 1}")
    return seed
