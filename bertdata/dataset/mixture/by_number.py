"""Examples of a mixture by their numbers, in any order, with bounded memory.

Needs NumPy when it is imported.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bertdata.dataset.masked_data import MaskedData
from bertdata.dataset.mixture.examples import MixedExamples
from bertdata.dataset.mixture.turns import turns_of
from bertdata.dataset.random_access import RandomAccess
from bertdata.examples import columns
from bertdata.records import ExampleBatch


class MixedAccess:
    """Examples of a mixture by their numbers: each source has random access of its own, for its last pass."""

    def __init__(self, data: MixedExamples) -> None:
        self._data = data
        self._turns = turns_of(tuple(source.weight for source in data.sources))
        self._sources: dict[int, tuple[int, RandomAccess]] = {}

    def batch(self, numbers: Sequence[int]) -> ExampleBatch:
        """The examples of these numbers, each from 0 on, in this order. One at least."""
        sources, turns = self._turns.find(np.asarray(numbers) + self._data.first)
        sizes = np.array([part.examples for part in self._data.parts])
        passes, within = np.divmod(turns, sizes[sources])
        found, places = [], []
        for source, number in sorted(set(zip(sources.tolist(), passes.tolist(), strict=True))):
            chosen = np.flatnonzero((sources == source) & (passes == number))
            found.append(self._access(source, number).batch(within[chosen].tolist()))
            places.append(chosen)
        return columns.take(columns.join(found), np.argsort(np.concatenate(places)))

    def _access(self, source: int, number: int) -> RandomAccess:
        """The source in its pass of that number, whose masks are those of another epoch."""
        part = self._data.parts[source]
        epoch = number if isinstance(part, MaskedData) else 0
        if self._sources.get(source, (-1,))[0] != epoch:
            if isinstance(part, MaskedData):
                part = replace(part, epoch=part.epoch + epoch)
            self._sources[source] = epoch, RandomAccess(part)
        return self._sources[source][1]
