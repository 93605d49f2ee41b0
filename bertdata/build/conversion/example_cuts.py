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
    """Return the index of each shard's first example, followed by the number of all examples.

    Shards have ceil(examples / shards) examples. The first few have one fewer. Raises SettingsError if a
    shard would be empty.
    """
    require(
        1 <= shards <= examples,
        f"num_shards is {shards}, expected 1 to {examples}, the number of examples",
    )
    # 10 examples in 4 shards: nominal 3, excess 2 -> sizes 2, 2, 3, 3
    nominal = -(-examples // shards)
    excess = nominal * shards - examples
    return tuple(number * nominal - min(number, excess) for number in range(shards + 1))


def find_destinations(examples: int) -> Array:
    """Return the new position of each example in NVIDIA's published permutation (uint32, uint64 if needed).

    NVIDIA's program lists all (file, row) pairs with the files sorted by name, shuffles the list with
    Python's ``random`` and seed 24, and reads it in that order. The shuffle depends only on the length of the
    list, so shuffling the numbers 0, 1, 2 ... gives the same permutation. Uses twice 4 bytes per example.
    """
    order = array("I" if examples < 1 << 32 else "Q", range(examples))
    Random(SHUFFLE_SEED).shuffle(order)
    shuffled = np.frombuffer(order, f"u{order.itemsize}") if examples else np.zeros(0, np.uint32)
    # shuffled[k] is the example at position k. Invert it: found[example] is the position.
    found = np.empty_like(shuffled)
    found[shuffled] = np.arange(examples, dtype=shuffled.dtype)
    return found
