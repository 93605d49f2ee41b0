"""Packs the sequences of an epoch into rows. Each sequence goes to the row where it fits best.

The result depends only on the lengths of the sequences. Pure-Python twin of _native/loaders/modernbert.h.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from bertdata.records import Buffer


class PackerState(NamedTuple):
    """State of a packer, from which it can continue.

    taken: number of sequences that were read, in the epoch's order.
    waiting: indices of the sequences that were read but are in no row yet.
    """

    taken: int
    waiting: list[int]


class PackedRows(NamedTuple):
    """The sequences of one batch, row after row.

    places: index of each sequence in the epoch's order.
    ends: for each row, how many sequences there are up to its end.
    """

    places: Buffer
    ends: Buffer


class Packer:
    """Object that packs sequences into batches of rows with room for ``width`` ids each.

    lengths: number of ids of each sequence, in the epoch's order, at most ``width``. Sequences without ids
        are skipped.
    batch_size: number of sequences that are read from the source at a time.
    buffer_size: most sequences that may have been read without being in a row yet.
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
        """Pack the next batch into this many rows.

        Return None if not every row gets a sequence, at the epoch's end.

        Each sequence goes to the row with the least room that is sufficient, and among equal rows to the
        first. A sequence that fits into no row waits for the next batch.
        """
        room = [self._width] * rows
        held: list[list[int]] = [[] for _ in range(rows)]
        skipped: list[int] = []
        while self._buffer or self._fill_buffer(len(skipped)):
            place = self._buffer.popleft()
            length = self._lengths[place]
            fitting = [(left, row) for row, left in enumerate(room) if left >= length]
            if not fitting:
                skipped.append(place)
                continue
            _, row = min(fitting)  # the row with the least room, and among these the first
            held[row].append(place)
            room[row] -= length
        # Skipped sequences come first in the next batch. extendleft reverses their order, as ModernBERT's
        # program does.
        self._buffer.extendleft(skipped)
        if not all(held):
            return None
        ends = [sum(map(len, held[: row + 1])) for row in range(rows)]
        return PackedRows([place for row in held for place in row], ends)

    def _fill_buffer(self, skipped: int) -> int:
        """Read sequences into the buffer while it has room. Return the number of sequences read.

        skipped: number of sequences that wait outside the buffer. They count against its size.
        """
        added = 0
        # As in ModernBERT's program, sequences are read in source batches of a fixed size. A further batch is
        # read if the buffer has room for it besides the skipped sequences.
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
