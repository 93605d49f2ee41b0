"""MT19937 random streams, seeded as by CPython or by NumPy, and the draws derived from them.

The generator itself is the interpreter's, because CPython promises that ``random()`` and ``getrandbits()``
give the same numbers for a seed in every version. CPython makes no such promise for ``randint`` or
``shuffle``, so these are written out here. NumPy promises that the draws of its global generator stay the
same. Pure-Python twin of _native/examples/mt19937.h.
"""

import random
from typing import TypeVar

Item = TypeVar("Item")

_WORDS = 624
_WORD = (1 << 32) - 1


class RandomStream:
    """Draws of CPython's ``random.Random(seed)``. Any integer is a seed, and its sign is ignored."""

    def __init__(self, seed: int) -> None:
        generator = random.Random(abs(seed))
        self.random = generator.random
        """Return a number in [0, 1) of 53 bits: ``((a >> 5) * 2**26 + (b >> 6)) / 2**53`` of two outputs."""
        self._bits = generator.getrandbits

    def below(self, limit: int) -> int:
        """Return an integer in [0, limit).

        The integer is the top bits of an output. It is drawn again until it is below the limit.
        """
        width = limit.bit_length()
        draw = self._bits(width)
        while draw >= limit:
            draw = self._bits(width)
        return draw

    def randint(self, first: int, last: int) -> int:
        """Return an integer in [first, last]."""
        return first + self.below(last - first + 1)

    def shuffle(self, items: list[Item]) -> None:
        """Shuffle a list in place, from its end. Each item except the first takes one draw of ``below``."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]


def make_seed_key(seed: int) -> list[int]:
    """Return the seed's absolute value as 32-bit digits, least significant first: the key of MT19937."""
    rest = abs(seed)
    key = [rest & 0xFFFFFFFF]
    while rest := rest >> 32:
        key.append(rest & 0xFFFFFFFF)
    return key


class NumpyStream:
    """Draws of ``numpy.random`` after ``numpy.random.seed(number)``, for a number below 2**32.

    Pure-Python twin of RandomStream::of_number.
    """

    def __init__(self, number: int) -> None:
        state = [number]
        for place in range(1, _WORDS):
            last = state[-1]
            state.append((1812433253 * (last ^ last >> 30) + place) & _WORD)
        generator = random.Random()
        generator.setstate((3, (*state, _WORDS), None))
        self.random = generator.random
        """Return a number in [0, 1), as ``numpy.random.random_sample()``."""
        self._bits = generator.getrandbits

    def below(self, limit: int) -> int:
        """Return ``numpy.random.choice(limit)``, for a limit of at most 2**32.

        The result is the low bits of an output, drawn again until it is below the limit. A limit of 1 draws
        nothing.
        """
        if limit == 1:
            return 0
        mask = (1 << (limit - 1).bit_length()) - 1
        draw = self._bits(32) & mask
        while draw >= limit:
            draw = self._bits(32) & mask
        return draw
