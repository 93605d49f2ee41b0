"""Random access to the examples of a mixture (several datasets read as one) by their numbers.

Examples can be read in any order, and memory is bounded. This module imports NumPy.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bertdata.dataset.masked_data import MaskedData
from bertdata.dataset.mixture.examples import MixedExamples
from bertdata.dataset.mixture.turns import find_turns
from bertdata.dataset.random_access import RandomAccess
from bertdata.examples import columns
from bertdata.records import ExampleBatch


class MixedAccess:
    """Random access to the examples of a mixture.

    The mixture reads each source (one of its datasets) again and again. For each source, the RandomAccess
    object of the latest such pass stays open.
    """

    def __init__(self, data: MixedExamples) -> None:
        self._data = data
        self._turns = find_turns(tuple(source.weight for source in data.sources))
        self._sources: dict[int, tuple[int, RandomAccess]] = {}

    def read_batch(self, numbers: Sequence[int]) -> ExampleBatch:
        """Return the examples with these numbers, in this order.

        numbers: indices of examples, from 0. There must be at least one.
        """
        # A source of 3 examples starts again after every third turn. Its turns 0 to 2 are pass 0, and its
        # turns 3 to 5 are pass 1. For example, turn 7 is example 1 of pass 2.
        sources, turns = self._turns.find_sources(np.asarray(numbers) + self._data.first)
        sizes = np.array([part.examples for part in self._data.parts])
        passes, within = np.divmod(turns, sizes[sources])
        found, places = [], []
        # Examples of different passes are read separately, because each pass over a source may have other
        # masks.
        for source, number in sorted(set(zip(sources.tolist(), passes.tolist(), strict=True))):
            chosen = np.flatnonzero((sources == source) & (passes == number))
            found.append(self._open_source(source, number).read_batch(within[chosen].tolist()))
            places.append(chosen)
        return columns.take_examples(columns.join_batches(found), np.argsort(np.concatenate(places)))

    def _open_source(self, source: int, number: int) -> RandomAccess:
        """Return random access to the examples of a source.

        source: index of the source.
        number: number of the pass over the source. It selects the epoch of the masks.
        """
        part = self._data.parts[source]
        epoch = number if isinstance(part, MaskedData) else 0
        if self._sources.get(source, (-1,))[0] != epoch:
            if isinstance(part, MaskedData):
                part = replace(part, epoch=part.epoch + epoch)
            self._sources[source] = epoch, RandomAccess(part)
        return self._sources[source][1]
