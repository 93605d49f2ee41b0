"""The random stream that a release of fairseq uses for an example's masks.

::

    release         generator and seeding
    fairseq         main branch: PCG64, seeded as by ``numpy.random.default_rng``
    fairseq-0.12    v0.12.2 and earlier: MT19937, seeded as by ``numpy.random.seed``
"""

from collections.abc import Callable
from typing import Protocol

from bertdata.examples.pcg_stream import PcgStream
from bertdata.examples.random_stream import NumpyStream


class MaskStream(Protocol):
    """Interface of the random streams from which fairseq's masks are drawn."""

    def random(self) -> float:
        """Return a number in [0, 1) with 53 random bits."""
        ...

    def choice(self, population: int, count: int) -> list[int]:
        """Return ``count`` different random integers from 0 to ``population - 1``."""
        ...


class TwisterStream:
    """The draws that ``numpy.random`` makes after ``numpy.random.seed(seed)``."""

    def __init__(self, seed: int) -> None:
        stream = NumpyStream(seed)
        self.random = stream.random
        self._below = stream.below

    def permutation(self, count: int) -> list[int]:
        """Return ``numpy.random.permutation(count)``.

        Each position, from the last down to the second, is swapped with a random position that is not larger.
        """
        found = list(range(count))
        for place in range(count - 1, 0, -1):
            other = self._below(place + 1)
            found[place], found[other] = found[other], found[place]
        return found

    def choice(self, population: int, count: int) -> list[int]:
        """Return ``numpy.random.choice(population, count, replace=False)``: the first items of a
        permutation.
        """
        return self.permutation(population)[:count]


STREAMS: dict[str, Callable[[int], MaskStream]] = {"fairseq": PcgStream, "fairseq-0.12": TwisterStream}
RELEASES = tuple(STREAMS)
"""The releases of fairseq whose masks can be reproduced."""
