"""Read examples of a mixture by their numbers, in any order and with bounded memory.

This module imports NumPy.
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

    For each source, the RandomAccess for the latest pass over it is kept open.
    """

    def __init__(self, data: MixedExamples) -> None:
        self._data = data
        self._turns = find_turns(tuple(source.weight for source in data.sources))
        self._sources: dict[int, tuple[int, RandomAccess]] = {}

    def read_batch(self, numbers: Sequence[int]) -> ExampleBatch:
        """Return the examples with these numbers, in this order.

        numbers: from 0 on, not empty.
        """
        # A source of 3 examples starts again after every third turn: its turns 0 to 2 are pass 0, turns 3 to
        # 5 are pass 1, and turn 7 is example 1 of pass 2.
        sources, turns = self._turns.find(np.asarray(numbers) + self._data.first)
        sizes = np.array([part.examples for part in self._data.parts])
        passes, within = np.divmod(turns, sizes[sources])
        found, places = [], []
        # Read each pass separately, since each pass over a source may have masks of another epoch.
        for source, number in sorted(set(zip(sources.tolist(), passes.tolist(), strict=True))):
            chosen = np.flatnonzero((sources == source) & (passes == number))
            found.append(self._open_source(source, number).read_batch(within[chosen].tolist()))
            places.append(chosen)
        return columns.take_examples(columns.join_batches(found), np.argsort(np.concatenate(places)))

    def _open_source(self, source: int, number: int) -> RandomAccess:
        """Return random access to a source.

        number: pass over the source, which selects the masks' epoch.
        """
        part = self._data.parts[source]
        epoch = number if isinstance(part, MaskedData) else 0
        if self._sources.get(source, (-1,))[0] != epoch:
            if isinstance(part, MaskedData):
                part = replace(part, epoch=part.epoch + epoch)
            self._sources[source] = epoch, RandomAccess(part)
        return self._sources[source][1]
