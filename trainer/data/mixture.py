"""Mixtures of datasets: the order of their examples, and the epochs of each source.

A source is one of the mixed datasets. Its examples come in the same order as if it were trained on alone
(``trainer.data.order``), and it begins its next epoch when it runs out. ``bertdata.dataset.mixture.turns``
decides which source provides the next example. So the order is a function of the seed and the sources'
weights. An epoch of the mixture, in positions and settings, has as many examples as all sources together. If
the datasets are packed, the word "examples" in this module means packed rows.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise

import numpy as np

from bertdata.dataset.mixture.turns import find_turns
from bertdata.dataset.reader import SourceShare
from bertdata.examples.columns import Array
from trainer.data.order import FileRows, Order, Position


class MixedOrder(Order):
    """The endless order of a mixture's examples.

    files: files of all sources, one source after the other, each as (name, number of examples).
    open_files: number of open files per source.
    """

    def __init__(
        self,
        files: Sequence[tuple[str, int]],
        *,
        sources: Sequence[SourceShare],
        seed: int,
        open_files: int,
    ) -> None:
        self._first_files = [0, *accumulate(source.shards for source in sources)]
        self._orders = [
            Order(files[start:end], seed=seed, open_files=open_files)
            for start, end in pairwise(self._first_files)
        ]
        self._turns = find_turns(tuple(source.weight for source in sources))
        self._kept = np.arange(open_files)
        self.examples = sum(order.examples for order in self._orders)

    def find(self, position: Position, offsets: Array) -> Iterator[FileRows]:
        """Yield the examples at the offsets from the position, file by file.

        Also yields files that have none of these examples but will be needed for later ones. A source with a
        small weight may not be used for a long time, and its open files must stay decoded meanwhile.
        """
        # sources: source of each place. numbers: examples of that source before the place.
        # following: examples of each source before the place after the last one.
        places = position.epoch * self.examples + position.examples + offsets
        sources, numbers = self._turns.find_sources(places)
        following = self._turns.count_turns(int(places.max()) + 1)
        for source, order in enumerate(self._orders):
            targets = np.flatnonzero(sources == source)
            wanted = np.concatenate([numbers[targets], following[source] + self._kept])
            for part in order.find(Position(), wanted):
                taken = part.targets < len(targets)
                yield FileRows(
                    self._first_files[source] + part.file,
                    part.rows[taken],
                    targets[part.targets[taken]],
                    part.epoch,
                )

    def epochs(self, place: int) -> list[float]:
        """Return how many epochs of each source lie before a place."""
        counts = self._turns.count_turns(place).tolist()
        return [count / order.examples for count, order in zip(counts, self._orders, strict=True)]


def bind_mixed_order(sources: Sequence[SourceShare]) -> partial[MixedOrder]:
    """Return ``MixedOrder`` with the sources bound, to be called with the arguments of ``Order``."""
    return partial(MixedOrder, sources=sources)
