"""Random streams of the generator MT19937, seeded and drawn from as CPython or NumPy does.

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
    """The draws that CPython's ``random.Random(seed)`` makes. Any integer is a seed, and its sign is
    ignored.
    """

    def __init__(self, seed: int) -> None:
        generator = random.Random(abs(seed))
        self.random = generator.random
        """Return a number in [0, 1) of 53 bits: ``((a >> 5) * 2**26 + (b >> 6)) / 2**53`` of two outputs."""
        self._bits = generator.getrandbits

    def below(self, limit: int) -> int:
        """Return a random integer from 0 to ``limit - 1``.

        The integer is the top bits of an output. Outputs are drawn until the integer is below the limit.
        """
        width = limit.bit_length()
        draw = self._bits(width)
        while draw >= limit:
            draw = self._bits(width)
        return draw

    def randint(self, first: int, last: int) -> int:
        """Return a random integer from ``first`` to ``last``. Both can be drawn."""
        return first + self.below(last - first + 1)

    def shuffle(self, items: list[Item]) -> None:
        """Shuffle a list in place, from its end.

        There is one call of ``below`` for each item except the first.
        """
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]


def make_seed_key(seed: int) -> list[int]:
    """Return the key with which CPython seeds MT19937.

    It is the seed's absolute value as 32-bit words, least significant first.
    """
    rest = abs(seed)
    key = [rest & 0xFFFFFFFF]
    while rest := rest >> 32:
        key.append(rest & 0xFFFFFFFF)
    return key


class NumpyStream:
    """The draws that ``numpy.random`` makes after ``numpy.random.seed(number)``. The number is below 2**32.

    Pure-Python twin of RandomStream::of_number in _native/examples/mt19937.h.
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
        """Return ``numpy.random.choice(limit)``, an integer from 0 to ``limit - 1``.

        The integer is the low bits of an output. Outputs are drawn until the integer is below the limit.

        limit: at most 2**32. A limit of 1 draws nothing.
        """
        if limit == 1:
            return 0
        mask = (1 << (limit - 1).bit_length()) - 1
        draw = self._bits(32) & mask
        while draw >= limit:
            draw = self._bits(32) & mask
        return draw
