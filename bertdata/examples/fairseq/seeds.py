"""Seeds of fairseq's masks: Python's hash of (seed, epoch, example), as arithmetic.

The hash of a tuple of numbers is that of CPython 3.8 and later on 64 bits, in which a tuple's items are mixed
as xxHash mixes its input. Needs NumPy when it is imported.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bertdata.examples.columns import Array

_LONG = (1 << 64) - 1
_MODULUS = (1 << 61) - 1  # of the hash of a number
_PRIMES = 11400714785074694791, 14029467366897019727, 2870177450012600261
_LENGTH_KEY = 3527539
_INSTEAD_OF_MINUS_1 = 1546275796
_SEEDS = 1_000_000


def number_hash(number: int) -> int:
    """CPython's ``hash`` of a whole number."""
    found = abs(number) % _MODULUS
    if number >= 0:
        return found
    return -2 if found == 1 else -found


def tuple_hash(numbers: Sequence[int]) -> int:
    """CPython's ``hash`` of a tuple of whole numbers, signed."""
    total = _PRIMES[2]
    for number in numbers:
        total = (total + number_hash(number) * _PRIMES[1]) & _LONG
        total = (total << 31 | total >> 33) & _LONG
        total = total * _PRIMES[0] & _LONG
    total = (total + (len(numbers) ^ _PRIMES[2] ^ _LENGTH_KEY)) & _LONG
    if total == _LONG:
        return _INSTEAD_OF_MINUS_1
    return total - (1 << 64) if total >> 63 else total


def generator_seed(*numbers: int) -> int:
    """``int(hash(numbers) % 1e6)`` of (seed, epoch, example): the hash is rounded to a double first.

    So seeds are coarse: 200,000 examples have fewer than 20,000 of them.
    """
    return int(float(tuple_hash(numbers))) % _SEEDS


def generator_seeds(seed: int, epoch: int, examples: Array) -> Array:
    """The seeds (N,) of many examples, uint64 as the examples' numbers are. Numbers below 2**61 - 1."""
    total = np.full(len(examples), _PRIMES[2], np.uint64)
    lanes: list[Any] = [np.uint64(number_hash(number) * _PRIMES[1] & _LONG) for number in (seed, epoch)]
    for lane in (*lanes, examples * np.uint64(_PRIMES[1])):
        total += lane
        total = (total << np.uint64(31) | total >> np.uint64(33)) * np.uint64(_PRIMES[0])
    total += np.uint64(3 ^ _PRIMES[2] ^ _LENGTH_KEY)
    total[total == np.uint64(_LONG)] = _INSTEAD_OF_MINUS_1
    seeds: Array = np.mod(total.view(np.int64).astype(np.float64), float(_SEEDS)).astype(np.uint64)
    return seeds
