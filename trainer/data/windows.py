"""Windows: consecutive examples of the training's order, put into another order within the window."""

from collections.abc import Callable, Iterator

import numpy as np

from bertdata.examples.columns import Array
from trainer.data.order import FileRows


class Window:
    """The examples of a window, in another order.

    parts: the examples as the order yields them. order: for each new place the old place.
    """

    def __init__(self, parts: list[FileRows], order: Array) -> None:
        part, place = np.empty((2, len(order)), np.int64)
        for number, one in enumerate(parts):
            part[one.targets], place[one.targets] = number, one.rows
        self.parts = parts
        self._part, self._place = part[order], place[order]

    def find(self, index: Array, targets: Array) -> Iterator[FileRows]:
        """Yield the examples at the places ``index`` of the window, file by file.

        targets: for each example its place among the rows that were asked for.

        Also yields files that have none of these examples, because other examples of these files are needed
        soon.
        """
        own, place = self._part[index], self._place[index]
        for number, part in enumerate(self.parts):
            here = np.flatnonzero(own == number)
            yield FileRows(part.file, place[here], targets[here], part.epoch)


def find_lengths(parts: list[FileRows], count: int, lengths: Callable[[int], Array]) -> Array:
    """Return the tokens of each of a window's examples. lengths: returns the tokens of a file's examples."""
    found = np.empty(count, np.int64)
    for part in parts:
        found[part.targets] = lengths(part.file)[part.rows]
    return found
