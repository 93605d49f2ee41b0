"""fairseq's order of examples and its batches of a fixed number of them.

Source: fairseq/tasks/masked_lm.py, data/sort_dataset.py, data/iterators.py. Needs NumPy when it is imported.
"""

from collections.abc import Sequence

import numpy as np

from bertdata.errors import SettingsError
from bertdata.examples.columns import Array
from bertdata.examples.fairseq.streams import TwisterStream


def fairseq_order(lengths: Sequence[int] | Array, seed: int) -> Array:
    """The examples' numbers, int64 (N,), the shortest first. Equals are in a random order of the seed.

    lengths: ids of each example. seed: fairseq's ``--seed``, 0 to 2**32 - 1.
    """
    permutation = np.array(TwisterStream(_checked(seed)).permutation(len(lengths)))
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
    """This rank's batches of an epoch, counted from 1: the numbers of ``batch_size`` neighbours in the order.

    The batches of all ranks are shuffled by seed + epoch and dealt in turn. The last ranks may have an empty
    batch at the end, so that all have as many. batch_size: a multiple of 8 or below 8, as fairseq keeps it.
    """
    if batch_size < 1 or (batch_size > 8 and batch_size % 8):
        raise SettingsError(f"batch_size is {batch_size}, expected 1 to 8, or a multiple of 8")
    if not 0 <= rank < world:
        raise SettingsError(f"rank is {rank}, expected 0 to {world - 1}")
    order = fairseq_order(lengths, seed)
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    shuffled = [batches[place] for place in TwisterStream(_checked(seed + epoch)).permutation(len(batches))]
    shuffled += [order[:0]] * (-len(shuffled) % world)
    return shuffled[rank::world]


def _checked(seed: int) -> int:
    if not 0 <= seed < 1 << 32:
        raise SettingsError(f"the seed of an order is {seed}, expected 0 to {(1 << 32) - 1}")
    return seed
