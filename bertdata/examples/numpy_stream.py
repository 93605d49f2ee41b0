"""MT19937 as ``numpy.random.seed`` seeds it: the stream of programs that draw from NumPy's global generator.

The generator is the interpreter's, in NumPy's state. Twin of RandomStream::of_number in
_native/examples/mt19937.h.
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
