"""The random stream of an example's masks, by fairseq's release.

fairseq         its head: PCG64 as ``numpy.random.default_rng`` seeds it
fairseq-0.12    v0.12.2 and before: MT19937 as ``numpy.random.seed`` seeds it
"""

from collections.abc import Callable
from typing import Protocol

from bertdata.examples.pcg_stream import PcgStream
from bertdata.examples.random_stream import NumpyStream


class MaskStream(Protocol):
    """The draws that masks need."""

    def random(self) -> float:
        """A double in [0, 1)."""
        ...

    def choice(self, population: int, count: int) -> list[int]:
        """So many different numbers below the population."""
        ...


class TwisterStream:
    """Draws of ``numpy.random`` after ``numpy.random.seed(seed)``."""

    def __init__(self, seed: int) -> None:
        stream = NumpyStream(seed)
        self.random = stream.random
        self._below = stream.below

    def permutation(self, count: int) -> list[int]:
        """``numpy.random.permutation(count)``: each number, from the last, swaps with one up to it."""
        found = list(range(count))
        for place in range(count - 1, 0, -1):
            other = self._below(place + 1)
            found[place], found[other] = found[other], found[place]
        return found

    def choice(self, population: int, count: int) -> list[int]:
        """``numpy.random.choice(population, count, replace=False)``: the first of a permutation."""
        return self.permutation(population)[:count]


STREAMS: dict[str, Callable[[int], MaskStream]] = {"fairseq": PcgStream, "fairseq-0.12": TwisterStream}
RELEASES = tuple(STREAMS)
"""The dialects of masks, by fairseq's releases."""
