"""The packing of an epoch's sequences: greedy best fit from a buffer.

It depends on the sequences' lengths alone. Twin of _native/loaders/modernbert.h.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from bertdata.records import Buffer


class PackerState(NamedTuple):
    """The point that a packer has reached: sequences read of the epoch, and the places of those that wait."""

    taken: int
    waiting: list[int]


class PackedRows(NamedTuple):
    """Sequences of a batch, row after row, by their places in the epoch's order.

    ends: behind each row's sequences.
    """

    places: Buffer
    ends: Buffer


class Packer:
    """Batches of rows of up to ``width`` cells.

    lengths: of the sequences in the epoch's order, at most ``width`` each; empty ones are skipped.
    """

    def __init__(self, lengths: Sequence[int], *, batch_size: int, buffer_size: int, width: int) -> None:
        self._lengths, self._batch_size, self._buffer_size = lengths, batch_size, buffer_size
        self._width = width
        self._taken = 0
        self._buffer: deque[int] = deque()

    @property
    def state(self) -> PackerState:
        return PackerState(self._taken, list(self._buffer))

    @state.setter
    def state(self, state: PackerState) -> None:
        self._taken, self._buffer = state.taken, deque(state.waiting)

    def pack(self, rows: int) -> PackedRows | None:
        """The next batch of so many rows. None where the epoch has ended: a row would be empty.

        Each sequence goes to the row with the least room that is enough, the first of equals. One that has
        no room waits; those come first in the next batch, the last of them in front.
        """
        room = [self._width] * rows
        held: list[list[int]] = [[] for _ in range(rows)]
        skipped: list[int] = []
        while self._buffer or self._fill(len(skipped)):
            place = self._buffer.popleft()
            length = self._lengths[place]
            fitting = [(left, row) for row, left in enumerate(room) if left >= length]
            if not fitting:
                skipped.append(place)
                continue
            _, row = min(fitting)
            held[row].append(place)
            room[row] -= length
        self._buffer.extendleft(skipped)
        if not all(held):
            return None
        ends = [sum(map(len, held[: row + 1])) for row in range(rows)]
        return PackedRows([place for own in held for place in own], ends)

    def _fill(self, skipped: int) -> int:
        """Read whole source batches while the empty buffer has room. The number of sequences read."""
        added = 0
        while (
            self._taken < len(self._lengths)
            and self._buffer_size - len(self._buffer) > self._batch_size
            and added + self._batch_size <= self._buffer_size - skipped
        ):
            end = min(self._taken + self._batch_size, len(self._lengths))
            found = [place for place in range(self._taken, end) if self._lengths[place]]
            self._buffer.extend(found)
            added, self._taken = added + len(found), end
        return added
