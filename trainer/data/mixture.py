"""Mixtures of datasets: the order of their examples, and the epochs of each source.

Each source comes in the order that it has alone (``trainer.data.order``), from epoch to epoch of its own;
``bertdata.dataset.mixture.turns`` says whose turn it is. So the order is a function of seed, weights and the
place alone. An epoch of the mixture, in positions and settings, is as many examples as all sources hold
together. Of packed datasets, "examples" here are rows.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise

import numpy as np

from bertdata.dataset.mixture.turns import turns_of
from bertdata.dataset.reader import SourceShare
from bertdata.examples.columns import Array
from trainer.data.order import FileRows, Order, Position


class MixedOrder(Order):
    """The endless order of a mixture's examples.

    files: of all sources, one after the other, each a name and a number of examples. open_files: of each
    source.
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
        self._turns = turns_of(tuple(source.weight for source in sources))
        self._kept = np.arange(open_files)
        self.examples = sum(order.examples for order in self._orders)

    def find(self, position: Position, offsets: Array) -> Iterator[FileRows]:
        """The examples at the offsets from the position, file by file.

        None of a file too that is open after the last of them: a source with a small weight may have no
        example of it for a long time.
        """
        places = position.epoch * self.examples + position.examples + offsets
        sources, numbers = self._turns.find(places)
        following = self._turns.counts(int(places.max()) + 1)
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
        """The epochs that each source has given before a place."""
        counts = self._turns.counts(place).tolist()
        return [count / order.examples for count, order in zip(counts, self._orders, strict=True)]


def order_of(sources: Sequence[SourceShare]) -> partial[MixedOrder]:
    """The maker of the order of these sources, called as ``Order`` is."""
    return partial(MixedOrder, sources=sources)
