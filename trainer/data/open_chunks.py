"""The chunks of files from which the next rows come (``trainer.data.streams``).

The rows of an update come from hundreds of chunks. To find each chunk's rows by itself would take longer than
to decode them. So the random orders of the chunks in use are lines of a table, with which all rows of an
update are found at once.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from bertdata.examples.columns import Array
from trainer.data.order import DecodedPiece, FileRows, list_epochs

MOST_CHUNKS = 1 << 32
"""More than the number of chunks of any file. file * MOST_CHUNKS + chunk is another number for each chunk."""


class FoundRows(NamedTuple):
    """Rows of chunks of files.

    pieces: file and chunk of the chunks with these rows.
    epochs: number of the epoch for each chunk.
    chunks: for each row, the index of its chunk in ``pieces``.
    rows: for each row, its number in its file.
    lengths: for each row, its number of tokens. All are 0 if lengths are not known.
    """

    pieces: list[DecodedPiece]
    epochs: list[int]
    chunks: Array
    rows: Array
    lengths: Array

    def split(self, wanted: Array) -> Iterator[FileRows]:
        """Yield some of the rows, chunk by chunk.

        wanted: indices of the wanted rows. They become the targets' order: the first is the target 0.
        """
        chunks, rows = self.chunks[wanted], self.rows[wanted]
        targets = np.argsort(chunks, kind="stable")
        chunks, rows = chunks[targets], rows[targets]
        begin = 0
        for end in [*(np.flatnonzero(np.diff(chunks)) + 1).tolist(), len(chunks)]:
            if end > begin:
                number = int(chunks[begin])
                file, chunk = self.pieces[number]
                yield FileRows(file, rows[begin:end], targets[begin:end], self.epochs[number], chunk)
            begin = end


class OpenChunks:
    """Table with the random order of the rows of each chunk in use.

    permute: function that returns for an epoch, a file and a chunk the number of the chunk's first row in the
    file, and the numbers of its rows in their random order.
    lengths: function that returns the number of tokens of each row of a file. None if lengths are not known.
    chunk_rows: largest number of rows of a chunk.
    kept: number of chunks that are kept in the table. If a single call of ``find`` needs more, it gets more
    lines.
    """

    def __init__(
        self,
        permute: Callable[[int, int, int], tuple[int, Array]],
        lengths: Callable[[int], Array] | None,
        *,
        chunk_rows: int,
        kept: int,
    ) -> None:
        self._permute, self._lengths = permute, lengths
        # The line of each (epoch, file, chunk), the most recently used last.
        self._lines: OrderedDict[tuple[int, int, int], int] = OrderedDict()
        self._calls = 0
        self._last_calls = np.zeros(kept, np.int64)  # for each line, the last call that used it
        self._firsts = np.zeros(kept, np.int64)  # for each line, the first row of its chunk
        # The rows of each chunk in their random order, counted from its first row, and their lengths.
        small = np.uint16 if chunk_rows <= 1 << 16 else np.uint32
        self._orders = np.zeros((kept, chunk_rows), small)
        self._row_lengths = np.zeros((kept, chunk_rows), np.uint16)

    def find(self, epochs: Array, files: Array, chunks: Array, places: Array) -> FoundRows:
        """Find rows by their places in the random orders of chunks.

        epochs, files, chunks: epoch, file and chunk of each row.
        places: place of each row in the random order of its chunk.
        """
        self._calls += 1
        pieces, of_epochs = list[DecodedPiece](), list[int]()
        chunk_of_row, lines = np.empty((2, len(files)), np.int64)
        for epoch in list_epochs(epochs):
            here = epochs == epoch
            keys, own = np.unique(files[here] * MOST_CHUNKS + chunks[here], return_inverse=True)
            found = [divmod(key, MOST_CHUNKS) for key in keys.tolist()]
            of_epoch = np.array([self._find_line(epoch, *piece) for piece in found])
            chunk_of_row[here], lines[here] = len(pieces) + own, of_epoch[own]
            pieces += found
            of_epochs += [epoch] * len(found)
        rows = self._firsts[lines] + self._orders[lines, places]
        return FoundRows(pieces, of_epochs, chunk_of_row, rows, self._row_lengths[lines, places])

    def _find_line(self, epoch: int, file: int, chunk: int) -> int:
        """Return the number of a chunk's line in the table. Fill the line if the chunk is new."""
        key = epoch, file, chunk
        line = self._lines.get(key)
        if line is None:
            first, rows = self._permute(epoch, file, chunk)
            lengths = 0 if self._lengths is None else self._lengths(file)[rows]
            line = self._free_line()
            self._firsts[line] = first
            self._orders[line, : len(rows)] = rows - first
            self._row_lengths[line, : len(rows)] = lengths
            self._lines[key] = line
        self._lines.move_to_end(key)
        self._last_calls[line] = self._calls
        return line

    def _free_line(self) -> int:
        """Return the number of a line that is free. If there is none, forget the chunk that was not used for
        the longest time.
        """
        # All lines up to the number of chunks are used, because a line is filled as soon as it becomes free.
        if len(self._lines) < len(self._firsts):
            return len(self._lines)
        oldest, line = next(iter(self._lines.items()))
        if self._last_calls[line] < self._calls:
            del self._lines[oldest]
            return line
        for name in ("_last_calls", "_firsts", "_orders", "_row_lengths"):
            values = getattr(self, name)
            setattr(self, name, np.concatenate([values, np.zeros_like(values)]))
        return len(self._lines)
