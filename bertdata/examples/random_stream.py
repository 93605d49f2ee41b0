"""The one random stream of a shard: MT19937 as CPython seeds it, or NumPy, and the draws derived from it.

The generator itself is the interpreter's: CPython promises that ``random()`` and ``getrandbits()``
yield the same numbers for a seed in every version. The derived draws carry no such promise, so they
are written down here. NumPy promises that its draws are the same in all its versions; programs that draw from
its global generator have them. Twin of _native/examples/mt19937.h.
"""

import random
from typing import TypeVar

Item = TypeVar("Item")

_WORDS = 624
_WORD = (1 << 32) - 1


class RandomStream:
    """Draws from MT19937. Any integer is a seed, its sign does not count."""

    def __init__(self, seed: int) -> None:
        generator = random.Random(abs(seed))
        self.random = generator.random
        """A double in [0, 1) of 53 bits: ``((a >> 5) * 2**26 + (b >> 6)) / 2**53`` of two outputs."""
        self._bits = generator.getrandbits

    def below(self, limit: int) -> int:
        """An integer in [0, limit): the top bits of an output, drawn anew until below the limit."""
        width = limit.bit_length()
        draw = self._bits(width)
        while draw >= limit:
            draw = self._bits(width)
        return draw

    def randint(self, first: int, last: int) -> int:
        """An integer in [first, last]."""
        return first + self.below(last - first + 1)

    def shuffle(self, items: list[Item]) -> None:
        """Permute in place, one draw for each item but the first, from the end."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]


def seed_key(seed: int) -> list[int]:
    """The seed's absolute value in 32-bit digits, least significant first: MT19937's key."""
    rest = abs(seed)
    key = [rest & 0xFFFFFFFF]
    while rest := rest >> 32:
        key.append(rest & 0xFFFFFFFF)
    return key


class NumpyStream:
    """Draws of ``numpy.random`` after ``numpy.random.seed(number)``. number: below 2**32.

    Twin of RandomStream::of_number.
    """

    def __init__(self, number: int) -> None:
        state = [number]
        for place in range(1, _WORDS):
            last = state[-1]
            state.append((1812433253 * (last ^ last >> 30) + place) & _WORD)
        generator = random.Random()
        generator.setstate((3, (*state, _WORDS), None))
        self.random = generator.random
        """A double in [0, 1), as ``numpy.random.random_sample()``."""
        self._bits = generator.getrandbits

    def below(self, limit: int) -> int:
        """``numpy.random.choice(limit)``, limit at most 2**32: the low bits of an output below the limit.

        An output is drawn anew until it is. Nothing is drawn for a limit of 1.
        """
        if limit == 1:
            return 0
        mask = (1 << (limit - 1).bit_length()) - 1
        draw = self._bits(32) & mask
        while draw >= limit:
            draw = self._bits(32) & mask
        return draw
