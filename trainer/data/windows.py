"""Windows: consecutive examples of the training's order, put into another order within the window."""

from collections.abc import Callable, Iterator

import numpy as np

from bertdata.examples.columns import Array
from trainer.data.order import FileRows


class Window:
    """The examples of a window, that is, consecutive examples of the training's order, in another order.

    parts: the examples as the training's order yields them, file by file.
    order: for each place in the new order, the place in the training's order.
    """

    def __init__(self, parts: list[FileRows], order: Array) -> None:
        part, place = np.empty((2, len(order)), np.int64)
        for number, one in enumerate(parts):
            part[one.targets], place[one.targets] = number, one.rows
        self.parts = parts
        self._part, self._place = part[order], place[order]

    def find(self, index: Array, targets: Array) -> Iterator[FileRows]:
        """Yield some of the window's examples, file by file.

        Files of the window without any of these examples are yielded too, because their examples are needed
        soon.
        index: places of the examples in the window's new order.
        targets: for each of these examples, its index in the result that the caller wants.
        """
        own, place = self._part[index], self._place[index]
        for number, part in enumerate(self.parts):
            here = np.flatnonzero(own == number)
            yield FileRows(part.file, place[here], targets[here], part.epoch)


def find_lengths(parts: list[FileRows], count: int, lengths: Callable[[int], Array]) -> Array:
    """Return the number of tokens of each example of a window.

    parts: the examples, file by file.
    count: number of examples in the window.
    lengths: function that returns the number of tokens of each example of a file.
    """
    found = np.empty(count, np.int64)
    for part in parts:
        found[part.targets] = lengths(part.file)[part.rows]
    return found
