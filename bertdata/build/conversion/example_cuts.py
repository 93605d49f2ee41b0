"""Division of examples into shards, and NVIDIA's permutation of the examples.

Source: NVIDIA's MLPerf training results v2.0 to v5.0, which divide MLPerf's 500 TFRecord files in this way.
"""

from array import array
from random import Random

import numpy as np

from bertdata.config.settings import require
from bertdata.examples.columns import Array

SHUFFLE_SEED = 24


def find_shard_starts(examples: int, shards: int) -> tuple[int, ...]:
    """Return the index of the first example of each shard, followed by the total number of examples.

    A shard has ceil(examples / shards) examples, and the first few shards have one fewer. Raises
    SettingsError if a shard would be empty.
    """
    require(
        1 <= shards <= examples,
        f"num_shards is {shards}, expected 1 to {examples}, the number of examples",
    )
    # For example, 10 examples in 4 shards give nominal = 3 and excess = 2. The shards have 2, 2, 3 and 3
    # examples.
    nominal = -(-examples // shards)
    excess = nominal * shards - examples
    return tuple(number * nominal - min(number, excess) for number in range(shards + 1))


def find_destinations(examples: int) -> Array:
    """Return the new position of each example in NVIDIA's published permutation.

    The result is a uint32 array, or a uint64 array if there are too many examples.

    NVIDIA's program lists all pairs (file, row) with the files sorted by name, shuffles the list with
    Python's ``random`` and seed 24, and reads the examples in that order. The shuffle depends only on the
    length of the list, so shuffling the numbers 0, 1, 2 and so on gives the same permutation. Two arrays of
    this size are in memory at the same time.
    """
    order = array("I" if examples < 1 << 32 else "Q", range(examples))
    Random(SHUFFLE_SEED).shuffle(order)
    shuffled = np.frombuffer(order, f"u{order.itemsize}") if examples else np.zeros(0, np.uint32)
    # shuffled[k] is the example that moves to position k. The inverse permutation gives the position of each
    # example.
    found = np.empty_like(shuffled)
    found[shuffled] = np.arange(examples, dtype=shuffled.dtype)
    return found
