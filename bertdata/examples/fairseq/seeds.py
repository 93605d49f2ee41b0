"""Seeds of fairseq's masks. A seed is Python's hash of the tuple (seed, epoch, example), computed explicitly.

The hash is that of 64-bit CPython from version 3.8 on, which mixes the items of a tuple as xxHash does. It is
computed here because then the seeds do not depend on the interpreter, and whole arrays can be hashed. Needs
NumPy when it is imported.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bertdata.examples.columns import Array

_LONG = (1 << 64) - 1
_MODULUS = (1 << 61) - 1  # CPython's hash of an integer is the integer modulo this prime.
_PRIMES = 11400714785074694791, 14029467366897019727, 2870177450012600261
_LENGTH_KEY = 3527539
_INSTEAD_OF_MINUS_1 = 1546275796
_SEEDS = 1_000_000


def hash_number(number: int) -> int:
    """Return CPython's ``hash`` of an integer."""
    found = abs(number) % _MODULUS
    if number >= 0:
        return found
    return -2 if found == 1 else -found


def hash_tuple(numbers: Sequence[int]) -> int:
    """Return CPython's ``hash`` of a tuple of integers, a signed 64-bit number."""
    total = _PRIMES[2]
    for number in numbers:
        total = (total + hash_number(number) * _PRIMES[1]) & _LONG
        total = (total << 31 | total >> 33) & _LONG
        total = total * _PRIMES[0] & _LONG
    total = (total + (len(numbers) ^ _PRIMES[2] ^ _LENGTH_KEY)) & _LONG
    if total == _LONG:
        return _INSTEAD_OF_MINUS_1
    return total - (1 << 64) if total >> 63 else total


def compute_seed(*numbers: int) -> int:
    """Return ``int(hash((seed, epoch, example)) % 1e6)`` as fairseq computes it.

    Because 1e6 is a float, the hash is rounded to a double first. The seeds are therefore coarse: 200,000
    examples have fewer than 20,000 different seeds.
    """
    return int(float(hash_tuple(numbers))) % _SEEDS


def compute_seeds(seed: int, epoch: int, examples: Array) -> Array:
    """Return the seeds of many examples, uint64 (N,).

    examples: number of each example in the dataset, uint64, below 2**61 - 1.
    """
    # Compute ``hash_tuple`` for all examples at once. A lane is the hash of one item of the tuple. Seed and
    # epoch are the same for all examples, so their lanes are single numbers. The hash is modulo 2**64, as
    # uint64 arithmetic is.
    total = np.full(len(examples), _PRIMES[2], np.uint64)
    lanes: list[Any] = [np.uint64(hash_number(number) * _PRIMES[1] & _LONG) for number in (seed, epoch)]
    for lane in (*lanes, examples * np.uint64(_PRIMES[1])):
        total += lane
        total = (total << np.uint64(31) | total >> np.uint64(33)) * np.uint64(_PRIMES[0])
    total += np.uint64(3 ^ _PRIMES[2] ^ _LENGTH_KEY)
    total[total == np.uint64(_LONG)] = _INSTEAD_OF_MINUS_1
    seeds: Array = np.mod(total.view(np.int64).astype(np.float64), float(_SEEDS)).astype(np.uint64)
    return seeds
