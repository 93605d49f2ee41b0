"""Streams: the order of the examples with which many workers read a large dataset, each a part of it.

The order of ``trainer.data.order`` reads a few files at a time, each as a whole. Every worker then needs
every file. In the order of this module, an epoch has many streams. Each file belongs to a stream, and a
stream reads its files one after the other. So a worker that takes its examples from a few streams reads only
the files of these streams.

A file is read in chunks of consecutive rows, because with many streams there is no room in memory
for whole files. The rows of a chunk are shuffled. The first chunk of a file is smaller, by an amount that
follows from the file's name, so that the streams do not all need their next chunk at the same time.

The streams take turns. In a turn, a stream provides a run of consecutive rows (of its shuffled chunk). If
some streams end before the others, the others go on.

The examples of an update are sorted by stream, and are then cut into as many equal parts as the update has
groups of micro-batches. The streams are sorted by their numbers with the digits reversed (0, 4, 2, 6, 1, 5,
3, 7). So any few consecutive turns have streams from everywhere in the sorted list, and a group gets examples
from the same streams in every update. Groups too are numbered in this way: workers with neighbouring ranks
run on the same machine, and the groups of such workers get neighbouring streams for any number of
micro-batches that a worker accumulates.

Like the order, this division depends only on the seed, the epoch, the files and the number and size of an
update's micro-batches. It does not depend on the number of workers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from bertdata.examples.columns import Array
from trainer.data.open_chunks import MOST_CHUNKS, FoundRows, OpenChunks
from trainer.data.order import (
    Dealer,
    DecodedPiece,
    EpochIndex,
    FileRows,
    FileSpans,
    Order,
    Position,
    draw_numbers,
    list_epochs,
)
from trainer.data.reading import Chunks, Reading

_MACHINE = 8  # number of neighbouring micro-batches that get neighbouring streams, as machines have 8 devices


class StreamOrder(Order):
    """The order of the examples of some files that streams give, without end.

    files: (name, number of rows) of each file.
    seed: seed of the order.
    reading: number of streams, and size of the chunks.
    """

    def __init__(self, files: Sequence[tuple[str, int]], *, seed: int, reading: Reading) -> None:
        super().__init__(files, seed=seed, open_files=reading.open_files)
        self.chunks = Chunks(reading.chunk_rows)
        self._run = reading.turn_rows
        self._firsts = np.array([self.chunks.first_size(name, rows) if rows else 0 for name, rows in files])
        self._streams = lru_cache(maxsize=2)(self._divide_into_streams)
        self._chunk_permutation = lru_cache(maxsize=4 * self.queues)(self.permute_chunk)

    @property
    def run(self) -> int:
        """The number of rows that a stream provides in a turn."""
        return self._run

    @cached_property
    def ranks(self) -> Array:
        """The place of each stream in the list of streams that is sorted by reversed digits."""
        return rank_by_reversed_digits(self.queues)

    def find(self, position: Position, offsets: Array) -> Iterator[FileRows]:
        """Yield the rows at some distances after a position, chunk by chunk.

        position: position in the data.
        offsets: distances of the rows from the position, in rows.
        """
        epochs, files, rows = self.locate(position, offsets)
        for epoch in list_epochs(epochs):
            targets = np.flatnonzero(epochs == epoch)
            yield from self._find_in_chunks(epoch, files[targets], rows[targets], targets)

    def locate(self, position: Position, offsets: Array) -> tuple[Array, Array, Array]:
        """Return epoch, file and row of the rows at some distances after a position.

        A row is its number in the file before the rows of its chunk are shuffled. The arguments are those of
        ``find``.
        """
        epochs, index = np.divmod(position.examples + offsets, self.examples)
        epochs += position.epoch
        files, rows = np.empty((2, len(index)), np.int64)
        for epoch in list_epochs(epochs):
            here = epochs == epoch
            files[here], rows[here] = self._streams(epoch).find(index[here])
        return epochs, files, rows

    def _find_in_chunks(self, epoch: int, files: Array, rows: Array, targets: Array) -> Iterator[FileRows]:
        """Yield rows chunk by chunk.

        files: number of the file of each row.
        rows: number of each row in its file, before the rows of its chunk are shuffled.
        targets: for each row, its index in the result that the caller wants.
        """
        chunks = self.find_chunks(files, rows)
        keys = files * MOST_CHUNKS + chunks
        by_chunk = np.argsort(keys, kind="stable")
        edges = [*(np.flatnonzero(np.diff(keys[by_chunk])) + 1).tolist(), len(keys)]
        begin = 0
        for end in edges:
            here, begin = by_chunk[begin:end], end
            file, chunk = int(files[here[0]]), int(chunks[here[0]])
            start, shuffled = self._chunk_permutation(epoch, file, chunk)
            yield FileRows(file, shuffled[rows[here] - start], targets[here], epoch, chunk)

    def list_pieces(self, position: Position, offsets: Array) -> list[DecodedPiece]:
        """Return the chunks that must be decoded for the rows at some distances after a position."""
        epochs, files, rows = self.locate(position, offsets)
        found = list[DecodedPiece]()
        for epoch in list_epochs(epochs):
            here = epochs == epoch
            keys = np.unique(files[here] * MOST_CHUNKS + self.find_chunks(files[here], rows[here]))
            found += zip((keys // MOST_CHUNKS).tolist(), (keys % MOST_CHUNKS).tolist(), strict=True)
        return found

    def find_rows(self, position: Position, offsets: Array, open_chunks: OpenChunks) -> FoundRows:
        """Return the rows at some distances after a position. They are the same as those of ``find``, which
        is slower.

        position, offsets: arguments of ``find``.
        open_chunks: the chunks from which rows come at present.
        """
        epochs, files, rows = self.locate(position, offsets)
        numbers = self.find_chunks(files, rows)
        firsts = np.where(numbers, self._firsts[files] + (numbers - 1) * self.chunks.chunk_rows, 0)
        return open_chunks.find(epochs, files, numbers, rows - firsts)

    def find_streams(self, position: Position, offsets: Array) -> Array:
        """Return the streams that provide the rows at some distances after a position, each stream once."""
        epochs, index = np.divmod(position.examples + offsets, self.examples)
        found = [
            self._streams(position.epoch + int(epoch)).find_streams(index[epochs == epoch])[0]
            for epoch in list_epochs(epochs)
        ]
        streams: Array = np.unique(np.concatenate(found))
        return streams

    def list_spans(self, epoch: int) -> FileSpans:
        """Return where the rows of each file lie in an epoch."""
        return self._epoch(epoch).list_spans(len(self._files), self._run)

    def find_chunks(self, files: Array, rows: Array) -> Array:
        """Return the number of the chunk to which each row belongs.

        files: number of the file of each row.
        rows: number of each row in its file, before the rows of its chunk are shuffled.
        """
        behind = rows - self._firsts[files]
        found: Array = np.where(behind < 0, 0, 1 + behind // self.chunks.chunk_rows)
        return found

    def permute_chunk(self, epoch: int, file: int, chunk: int) -> tuple[int, Array]:
        """Return the first row of a chunk, and the numbers of its rows in their random order for an epoch."""
        name, rows = self._files[file]
        start = self.chunks.start(name, rows, chunk)
        size = min(self.chunks.chunk_rows if chunk else int(self._firsts[file]), rows - start)
        drawn = draw_numbers(size, self._seed, epoch, name, "chunk", chunk)
        return start, start + np.argsort(drawn, kind="stable")

    def _divide_into_streams(self, epoch: int) -> "StreamIndex":
        """Divide the files among the streams for an epoch."""
        return StreamIndex(self._epoch(epoch), self._run)

    def take_parts(self, position: Position, rows: int, parts: Array, count: int) -> Array:
        """Return the rows of some parts of an update, as distances from the update's position.

        The result has the shape (parts, rows / count). The rows of a part are in ascending order.

        position: position in the data at which the update begins.
        rows: number of rows of the update.
        parts: numbers of the wanted parts. The rows of the update, sorted by stream, are cut into ``count``
        equal parts.
        count: number of all parts.
        """
        if count == 1:
            return np.arange(rows)[np.newaxis]
        # An update may have rows of several epochs, and of several stretches of an epoch. In a stretch, the
        # same streams take turns. For each stretch and stream, count the rows in the update.
        stretches = list(self._find_stretches(position, rows))
        rank = np.concatenate([self.ranks[one.streams] for one in stretches])
        stretch = np.repeat(np.arange(len(stretches)), [len(one.streams) for one in stretches])
        counts = np.concatenate([one.counts for one in stretches])
        order = np.lexsort((stretch, rank))
        ends = np.cumsum(counts[order])
        each = rows // count
        found = np.empty((len(parts), each), np.int64)
        for number, part in enumerate(parts):
            # The part has the places ``wanted`` of the rows that are sorted by stream. For each, find the
            # stretch and the stream, and how many of its rows in the update come before.
            wanted = part * each + np.arange(each)
            slot = np.searchsorted(ends, wanted, side="right")
            before = wanted - (ends - counts[order])[slot]
            own = order[slot]
            for nth in np.unique(stretch[own]):
                here = np.flatnonzero(stretch[own] == nth)
                first = int(np.searchsorted(stretch, nth))
                found[number, here] = stretches[nth].locate(own[here] - first, before[here])
        return np.sort(found, axis=1)

    def _find_stretches(self, position: Position, rows: int) -> Iterator["StretchRows"]:
        """Yield the rows of an update, stretch by stretch."""
        done, epoch, start = 0, position.epoch, position.examples
        while done < rows:
            stop = min(self.examples, start + rows - done)
            yield from self._streams(epoch).find_stretches(start, stop, done)
            done, epoch, start = done + stop - start, epoch + 1, 0


class StretchRows(NamedTuple):
    """The rows of an update that lie in one stretch of an epoch, in which the same streams take turns.

    streams: numbers of these streams, in the order of their turns.
    counts: for each stream, the number of its rows in the update.
    taken: for each stream, the number of its rows in the stretch before the update.
    shift: what to add to a place in the stretch to get the distance from the update's position.
    length: number of rows that each stream has in the stretch.
    run: number of rows in a turn.
    """

    streams: Array
    counts: Array
    taken: Array
    shift: int
    length: int
    run: int

    def locate(self, streams: Array, numbers: Array) -> Array:
        """Return the distances of rows from the update's position.

        streams: for each row, the index of its stream in ``streams``.
        numbers: for each row, how many of the stream's rows in the update come before it.
        """
        width, row = len(self.streams), self.taken[streams] + numbers
        turn, inside = np.divmod(row, self.run)
        # the last turn of a stretch may be shorter
        size = np.minimum(self.run, self.length - turn * self.run)
        places: Array = turn * self.run * width + streams * size + inside + self.shift
        return places


class StreamIndex:
    """Finds the file and the row of a place in an epoch that is divided into streams.

    epoch: the files of each stream.
    run: number of rows that a stream provides in a turn.
    """

    def __init__(self, epoch: EpochIndex, run: int) -> None:
        self._epoch, self._run = epoch, run

    def find(self, index: Array) -> tuple[Array, Array]:
        """Return for each place in the epoch its file and its row in the file, before rows are shuffled."""
        return self._epoch.locate(*self.find_streams(index))

    def find_streams(self, index: Array) -> tuple[Array, Array]:
        """Return for each place in the epoch its stream, and its row among the rows of the stream.

        The rows are counted before they are shuffled.
        """
        epoch = self._epoch
        stretch = np.searchsorted(epoch.starts, index, side="right") - 1
        width, length = epoch.widths[stretch], epoch.lengths[stretch]
        place = index - epoch.starts[stretch]
        turn = place // (self._run * width)
        size = np.minimum(self._run, length - turn * self._run)
        beside, inside = np.divmod(place - turn * self._run * width, size)
        stream = epoch.active[stretch, beside]
        return stream, epoch.turns[stretch] + turn * self._run + inside

    def find_stretches(self, start: int, stop: int, shift: int) -> Iterator[StretchRows]:
        """Yield the rows between two places of the epoch, stretch by stretch.

        start, stop: the places.
        shift: distance of ``start`` from the update's position.
        """
        epoch = self._epoch
        first = int(np.searchsorted(epoch.starts, start, side="right")) - 1
        for nth in range(first, len(epoch.starts)):
            begin, width, length = int(epoch.starts[nth]), int(epoch.widths[nth]), int(epoch.lengths[nth])
            if begin >= stop:
                return
            taken = self._count(max(start, begin) - begin, width, length)
            until = self._count(min(stop, begin + width * length) - begin, width, length)
            yield StretchRows(
                epoch.active[nth, :width], until - taken, taken, shift + begin - start, length, self._run
            )

    def _count(self, places: int, width: int, length: int) -> Array:
        """Return for each stream of a stretch the number of its rows in the first places of the stretch.

        places: number of places.
        width: number of streams.
        length: number of rows that each stream has in the stretch.
        """
        turn = places // (self._run * width)
        size = min(self._run, length - turn * self._run)
        rest = places - turn * self._run * width
        counts: Array = turn * self._run + np.clip(rest - np.arange(width) * size, 0, size)
        return counts


def rank_by_reversed_digits(count: int) -> Array:
    """Return for each number below ``count`` its place if all are sorted by their reversed binary digits.

    For example, 8 numbers have the places 0, 4, 2, 6, 1, 5, 3 and 7. Consecutive numbers have places that
    are spread evenly (van der Corput 1935).
    """
    digits = max(1, (count - 1).bit_length())
    numbers = np.arange(count)
    reversed_numbers = sum(((numbers >> digit) & 1) << (digits - 1 - digit) for digit in range(digits))
    return np.argsort(np.argsort(reversed_numbers, kind="stable"), kind="stable")


@dataclass(frozen=True, kw_only=True, eq=False)
class StreamDealer(Dealer):
    """Divides the rows of each update among the micro-batches so that a worker needs few streams.

    order: the order of the rows.
    """

    order: StreamOrder

    @cached_property
    def parts(self) -> Array:
        """For each group of this worker, the part of an update that it gets."""
        groups = self.micro_batches // self.group
        own = np.unique(np.arange(self.rank, self.micro_batches, self.world_size) // self.group)
        # The groups of a machine's workers stay neighbours. For example, 16 groups of one micro-batch with 8
        # to a machine get the parts 0 to 7 and 8 to 15.
        together = next(size for size in (8, 4, 2, 1) if size * self.group <= _MACHINE or size == 1)
        while groups % together:
            together //= 2
        return rank_by_reversed_digits(groups // together)[own // together] * together + own % together

    @cached_property
    def open_chunks(self) -> OpenChunks:
        """The chunks from which rows come at present."""
        order = self.order
        return OpenChunks(
            order.permute_chunk,
            self.lengths if self.by_lengths else None,
            chunk_rows=order.chunks.chunk_rows,
            kept=4 * order.queues,
        )

    def find_for_updates(self, position: Position) -> tuple[list[FileRows], list[DecodedPiece]]:
        """Return this worker's rows in the next updates, and the chunks with the rows of its groups."""
        offsets = self.find_offsets(position)
        found = self.order.find_rows(position, offsets.ravel(), self.open_chunks)
        own = self._choose_own(found.lengths.reshape(offsets.shape))
        return list(found.split(own)), found.pieces

    def find_distance_ahead(self) -> int:
        """Return how many rows after a position the rows lie whose chunks are decoded in advance.

        It is a whole number of gathered updates, so that these rows too are those of whole updates.
        """
        step = self.updates * self.update_rows
        return max(1, round(self.ahead / step)) * step

    def find_offsets(self, position: Position) -> Array:
        """Return the rows of this worker's groups in the next updates, as distances from a position.

        The shape is (updates, groups, rows of a group).
        """
        order, size = self.order, self.update_rows
        count = self.micro_batches // self.group
        if count == 1:
            return np.arange(self.updates * size).reshape(self.updates, 1, size)
        return np.stack(
            [
                nth * size + order.take_parts(order.advance(position, nth * size), size, self.parts, count)
                for nth in range(self.updates)
            ]
        )

    def count_own_streams(self, position: Position) -> int:
        """Return how many different streams this worker reads until all streams have had their turn.

        position: the place in the data at which the count starts.
        """
        return len(self.find_own_streams(position))

    def find_own_streams(self, position: Position) -> set[int]:
        """Return the streams that this worker reads until all streams have had their turn.

        position: the place in the data at which the turns start.
        """
        found, order = set[int](), self.order
        size = self.update_rows
        count = self.micro_batches // self.group
        # Every stream has had its turn after this number of updates.
        for _ in range(-(-order.queues * order.run // size)):
            offsets = order.take_parts(position, size, self.parts, count)
            found.update(order.find_streams(position, offsets.ravel()).tolist())
            position = order.advance(position, size)
        return found
