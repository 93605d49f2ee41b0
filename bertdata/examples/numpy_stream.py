"""MT19937 as ``numpy.random.seed`` seeds it: the stream of programs that draw from NumPy's global generator.

The generator is the interpreter's, in NumPy's state. NumPy promises that these draws are the same in all its
versions. Twin of RandomStream::of_number in _native/examples/mt19937.h.
"""

import random

_WORDS = 624
_WORD = (1 << 32) - 1


class NumpyStream:
    """Draws of ``numpy.random`` after ``numpy.random.seed(number)``. number: below 2**32."""

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
