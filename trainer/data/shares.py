"""One worker's rows of the next updates, in the order of the examples."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bertdata.examples.columns import Array
from trainer.data.deal import Deal
from trainer.data.order import FileRows, Position


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Share:
    """The rows of a worker's micro-batches of one update or several, update by update.

    parts: rows of each file and their places among them; where row_ends is given, examples, of which it
    tells the one after each row. now, coming: the files that hold the rows of all workers, and those to be
    decoded next. positions: that after each update.
    """

    parts: list[FileRows]
    row_ends: Array | None = None
    now: list[int]
    coming: list[int]
    positions: list[Position]


class Shares(Protocol):
    """The shares of one worker, a function of the dataset, the settings and the number of workers."""

    def find(self, position: Position) -> Iterator[Share]:
        """The endless shares from the position on."""
        ...


class RowOrder(Protocol):
    """An order of rows: that of the examples as stored, or from length bins."""

    def find(self, position: Position, offsets: Array) -> Iterator[FileRows]:
        """The rows at the offsets from the position, file by file."""
        ...

    def advance(self, position: Position, examples: int) -> Position:
        """The position after that many more rows."""
        ...


class DealtShares:
    """Consecutive rows of the order, dealt to the micro-batches of an update.

    lengths: from a file to the tokens of its rows; None: rows are dealt in turn.
    rows_at_once: small updates are found several at a time, up to so many rows of the worker's own.
    ahead: rows between those that are used and those whose files are decoded.
    """

    def __init__(
        self,
        order: RowOrder,
        deal: Deal,
        *,
        update_rows: int,
        lengths: Callable[[int], Array] | None,
        rows_at_once: int,
        ahead: int,
    ) -> None:
        self._order, self._deal, self._lengths = order, deal, lengths
        self._update_rows = update_rows
        self._updates = max(1, rows_at_once // deal.offsets.size)
        self._ahead = max(ahead, self._updates * update_rows)

    def find(self, position: Position) -> Iterator[Share]:
        """The endless shares from the position on."""
        updates = np.arange(self._updates)[:, np.newaxis, np.newaxis] * self._update_rows
        offsets = updates + self._deal.offsets
        while True:
            found = list(self._order.find(position, offsets.ravel()))
            coming = self._order.find(position, offsets.ravel() + self._ahead)
            positions = []
            for _ in range(self._updates):
                position = self._order.advance(position, self._update_rows)
                positions.append(position)
            yield Share(
                parts=self._find_own(found, offsets.shape),
                now=[part.file for part in found],
                coming=[part.file for part in coming],
                positions=positions,
            )

    def _find_own(self, found: list[FileRows], shape: tuple[int, ...]) -> list[FileRows]:
        """Those of the rows found that are this worker's; targets: their places in its batches."""
        lengths = np.zeros(shape, np.int64)
        if self._lengths is not None:
            for part in found:
                lengths.ravel()[part.targets] = self._lengths(part.file)[part.rows]
        own = self._deal.own(lengths)
        places = np.full(lengths.size, -1)
        places[own] = np.arange(len(own))
        chosen = []
        for part in found:
            targets = places[part.targets]
            kept = targets >= 0
            chosen.append(FileRows(part.file, part.rows[kept], targets[kept], part.epoch))
        return chosen
