"""Mixtures of datasets: the order of their examples, and the epochs of each source.

The mixed datasets are called sources. The examples of a source come in the same order as if it were trained
on alone (``trainer.data.order``). When a source has no more examples, its next epoch begins.
``bertdata.dataset.mixture.turns`` decides which source provides the next example. So the order depends only
on the seed, the sources and their weights. In positions and settings, an epoch of the mixture has as many
examples as all sources together. If the datasets are packed, the word "examples" in this module means packed
rows.
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
    """The order of a mixture's examples, without end.

    files: (name, number of examples) of each file, for one source after the other.
    open_files: number of files of each source that are read at the same time.
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
        """Yield the examples at some distances after a position, file by file.

        Files that are needed for later examples are yielded too, with no examples. A source with a small
        weight may not be used for a long time. Its open files must stay decoded meanwhile.
        position: position in the data.
        offsets: distances of the examples from the position.
        """
        # For each place, ``sources`` has the source that provides its example, and ``numbers`` how many
        # examples this source has provided before. ``following`` has the number of examples that each source
        # has provided up to and with the last place.
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

    @property
    def sources(self) -> list[tuple[int, Order]]:
        """For each source, the number of its first file and the order of its examples."""
        return list(zip(self._first_files, self._orders, strict=False))

    def count_turns(self, place: int) -> Array:
        """Return for each source how many examples it has provided before a place in the mixture.

        A place is counted from the beginning of the first epoch.
        """
        return self._turns.count_turns(place)

    def epochs(self, place: int) -> list[float]:
        """Return for each source how many of its epochs, as a fraction, lie before a place in the mixture."""
        counts = self._turns.count_turns(place).tolist()
        return [count / order.examples for count, order in zip(counts, self._orders, strict=True)]


def bind_mixed_order(sources: Sequence[SourceShare]) -> partial[MixedOrder]:
    """Return a function that makes the ``MixedOrder`` of these sources. It takes the same arguments as
    ``Order``.
    """
    return partial(MixedOrder, sources=sources)
