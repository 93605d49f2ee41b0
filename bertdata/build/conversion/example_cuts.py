"""Cuts of all examples into shards, and NVIDIA's permutation of the examples.

Source: NVIDIA's MLPerf training results v2.0 to v5.0, which chop MLPerf's 500 TFRecords so.
"""

from array import array
from random import Random

import numpy as np

from bertdata.config.settings import check
from bertdata.examples.columns import Array

SHUFFLE_SEED = 24


def shard_starts(examples: int, shards: int) -> tuple[int, ...]:
    """The number of the first example of each shard, and ``examples``.

    Shards hold ceil(examples / shards), the first few one less. SettingsError where one would be empty.
    """
    check(
        1 <= shards <= examples,
        f"num_shards is {shards}, expected 1 to {examples}, the number of examples",
    )
    nominal = -(-examples // shards)
    excess = nominal * shards - examples
    return tuple(number * nominal - min(number, excess) for number in range(shards + 1))


def destinations(examples: int) -> Array:
    """For each example its place in the published permutation: example ``pairs[k]`` goes to place k.

    ``pairs`` is the list of all (file, row) pairs, files in order of their names, shuffled by Python's own
    generator, whose draws depend on the length of a list alone. Four bytes an example twice over.
    """
    order = array("I" if examples < 1 << 32 else "Q", range(examples))
    Random(SHUFFLE_SEED).shuffle(order)
    shuffled = np.frombuffer(order, f"u{order.itemsize}") if examples else np.zeros(0, np.uint32)
    found = np.empty_like(shuffled)
    found[shuffled] = np.arange(examples, dtype=shuffled.dtype)
    return found
