"""Permutations of range(size), each determined by a key. One number can be permuted without permuting the
others.

A permutation is a Feistel network over pairs (Black and Rogaway 2002, "Ciphers with arbitrary finite
domains"). With ``a = isqrt(size - 1) + 1`` and ``b = ceil(size / a)``, a number becomes the pair of its
quotient and remainder by b. The rounds alternately add a hash of one half to the other half. There are
slightly more pairs than numbers, so a result outside the range goes through the network again until it is
inside ("cycle walking").
"""

import hashlib
from collections.abc import Sequence
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

ROUNDS = 6
LARGEST = 1 << 60
_FACTORS = (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93)
_MASK = (1 << 64) - 1

Numbers = npt.NDArray[np.uint64]


def derive_round_keys(name: str) -> tuple[int, ...]:
    """Return the keys of a permutation, a 64-bit integer for each round.

    They are a BLAKE2b digest of its name.
    """
    digest = hashlib.blake2b(name.encode(), digest_size=8 * ROUNDS).digest()
    return tuple(int.from_bytes(digest[at : at + 8], "little") for at in range(0, 8 * ROUNDS, 8))


def permute_number(number: int, size: int, keys: Sequence[int]) -> int:
    """Return the number to which a permutation of range(size) maps ``number``.

    This readable version is the specification. ``Permutations.permute`` computes the same for arrays.
    """
    a, b = choose_pair_sizes(size)
    while True:
        left, right = divmod(number, b)
        for odd, key in enumerate(keys):
            if odd % 2:
                right = (right + _hash_below(b, left, key)) % b
            else:
                left = (left + _hash_below(a, right, key)) % a
        number = left * b + right
        if number < size:
            return number


def choose_pair_sizes(size: int) -> tuple[int, int]:
    """Return how many quotients and how many remainders there are.

    Their product is ``size`` or slightly more.
    """
    a = isqrt(max(0, size - 1)) + 1
    return a, max(1, -(-size // a))


def _hash_below(limit: int, value: int, key: int) -> int:
    """Hash a value to a number from 0 to ``limit - 1``."""
    # Mix the bits by multiplying and by shifting with xor. The upper 32 bits are then scaled to the limit,
    # which needs no division.
    mixed = ((value ^ key) * _FACTORS[0]) & _MASK
    mixed = ((mixed ^ (mixed >> 32)) * _FACTORS[1]) & _MASK
    return ((mixed >> 32) * limit) >> 32


class Permutations:
    """Several permutations, each determined by a key, that are computed for arrays of numbers.

    sizes: size of each permutation.
    names: name of each permutation, from which its keys are derived.
    """

    def __init__(self, sizes: Sequence[int], names: Sequence[str]) -> None:
        assert max(sizes, default=0) <= LARGEST, "sides below 2**32"
        both = [choose_pair_sizes(int(size)) for size in sizes]
        self._sizes = np.array(sizes, np.uint64)
        self._a = np.array([a for a, _ in both], np.uint64)
        self._b = np.array([b for _, b in both], np.uint64)
        self._keys = (
            np.array([derive_round_keys(name) for name in names], np.uint64).reshape(len(names), ROUNDS).T
        )

    def permute(self, which: npt.NDArray[Any], numbers: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the permuted numbers, with the same result as ``permute_number`` for each of them.

        which: for each number, the index of the permutation to use.
        """
        sizes = self._sizes[which]
        # Permute all numbers once. Then permute only the results that are outside their range again. On
        # average fewer than two passes are needed.
        found = self._permute_once(which, numbers.astype(np.uint64))
        outside = np.flatnonzero(found >= sizes)
        while len(outside):
            found[outside] = self._permute_once(which[outside], found[outside])
            outside = outside[found[outside] >= sizes[outside]]
        return found.astype(np.int64)

    def _permute_once(self, which: npt.NDArray[Any], numbers: Numbers) -> Numbers:
        """Return the numbers after all rounds of the Feistel network. Results can be outside the range."""
        a, b = self._a[which], self._b[which]
        left, right = np.divmod(numbers, b)
        for odd in range(ROUNDS):
            keys = self._keys[odd][which]
            if odd % 2:
                # Both summands are below b, so subtracting b at most once replaces the slow modulo.
                right += _hash_all_below(b, left, keys)
                right -= np.where(right >= b, b, np.uint64(0))
            else:
                left += _hash_all_below(a, right, keys)
                left -= np.where(left >= a, a, np.uint64(0))
        found: Numbers = left * b + right
        return found


def _hash_all_below(limits: Numbers, values: Numbers, keys: Numbers) -> Numbers:
    """Compute ``_hash_below`` for arrays of limits, values and keys."""
    mixed: Numbers = (values ^ keys) * np.uint64(_FACTORS[0])
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(_FACTORS[1])
    mixed >>= np.uint64(32)
    mixed *= limits
    mixed >>= np.uint64(32)
    return mixed
