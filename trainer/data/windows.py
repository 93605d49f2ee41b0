"""Windows of the order of the examples: so many that follow each other, put into another order."""

from collections.abc import Callable, Iterator

import numpy as np

from bertdata.examples.columns import Array
from trainer.data.order import FileRows


class Window:
    """The examples of a window, in an order of its own. parts: as the order of the examples gives them."""

    def __init__(self, parts: list[FileRows], order: Array) -> None:
        part, place = np.empty((2, len(order)), np.int64)
        for number, one in enumerate(parts):
            part[one.targets], place[one.targets] = number, one.rows
        self.parts = parts
        self._part, self._place = part[order], place[order]

    def find(self, index: Array, targets: Array) -> Iterator[FileRows]:
        """The examples at the index, for the targets. None of a file too, as others of it are needed soon."""
        own, place = self._part[index], self._place[index]
        for number, part in enumerate(self.parts):
            here = np.flatnonzero(own == number)
            yield FileRows(part.file, place[here], targets[here], part.epoch)


def lengths_of(parts: list[FileRows], count: int, lengths: Callable[[int], Array]) -> Array:
    """The tokens of each of a window's examples. lengths: from a file to the tokens of its examples."""
    found = np.empty(count, np.int64)
    for part in parts:
        found[part.targets] = lengths(part.file)[part.rows]
    return found
