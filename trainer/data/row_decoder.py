"""Decoding of single rows: of the files that several workers read, each decodes only its own rows.

Micro-batches exchange examples (``trainer.data.order``), so the rows of a worker are spread over files of
which it uses only a part. In some formats, such as TFRecord, a row can be read without the other rows. Of
such a file, only the byte offsets of the rows are found in advance. The rows of a batch are then read and
decoded together. The batches are the same as those that ``Decoder`` and ``ChunkDecoder`` make.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from itertools import accumulate, pairwise
from threading import Lock
from typing import IO, NamedTuple

import numpy as np

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.errors import ShardError
from bertdata.examples.columns import Array
from bertdata.records import ExampleBatch
from bertdata.shards.containers import find_container_by_name
from bertdata.shards.file_view import read_ranges
from bertdata.shards.protocol import ShardReader
from trainer.data.decoder import ChunkDecoder, PieceReader
from trainer.data.examples import CompactExamples, Piece, Rows
from trainer.data.order import FileRows
from trainer.data.reading import Chunks

_KEPT_PLACES = 2  # chunks of a file


def can_decode_single_rows(rows: Rows) -> bool:
    """Return True if single rows can be decoded from at least one of the files of a training."""
    return rows.has_single_rows and any(map(_has_single_rows, rows.data.shards))


def _has_single_rows(shard: Shard) -> bool:
    container = find_container_by_name(shard.path)
    return container is not None and container.has_single_rows


class RowDecoder(ChunkDecoder):
    """Decoder of single rows of files or of chunks.

    Files whose format does not allow this are decoded as by ``ChunkDecoder``.

    If files are read in chunks, they are compared with their md5 as by ``ChunkDecoder``. Otherwise a file is
    compared before its first row is used. A file that does not change is compared once.

    chunks: the division of files into chunks. With a single chunk per file, files are read as by ``Decoder``.
    round_rows: as in ``ChunkDecoder``. 0 without chunks: a file of a format without single rows is then
    decoded as a whole, and this memory becomes free as soon as the file is no longer needed.
    """

    def __init__(self, rows: Rows, chunks: Chunks, kept_lengths: int, streams: int, round_rows: int) -> None:
        super().__init__(rows, chunks, kept_lengths, streams, round_rows)
        assert rows.data.row_source is not None
        self._source = rows.data.row_source

    def take_all(self, parts: Sequence[FileRows]) -> list[Piece]:
        """Return rows of several files or chunks. Waits until the rows are found or decoded.

        All rows that are decoded singly are one item of the result, with a file of decoded examples that has
        only these rows.
        """
        pieces, by_form = list[Piece](), dict[object, list[tuple[ChunkPlaces, FileRows]]]()
        for part in parts:
            held = self._pieces[part.piece].result()
            if isinstance(held, ChunkPlaces):
                by_form.setdefault(held.reader.row_form, []).append((held, part))
            else:
                pieces.append(self.take(part))
        return [*pieces, *map(self._decode_together, by_form.values())]

    def _decode_together(self, found: "list[tuple[ChunkPlaces, FileRows]]") -> Piece:
        """Read rows of several files, and decode them at once.

        found: for each file or chunk, the places of its rows, and the rows to decode. All files have the same
        form.
        """
        files, starts, sizes = list[IO[bytes]](), list[int](), list[int]()
        for places, part in found:
            places.list_ranges(part.rows, files, starts, sizes)
        # All ranges are read at once, because threads wait for each other whenever one returns from reading.
        data, count = read_ranges(files, starts, sizes)
        batches = list[ExampleBatch]()
        if count == len(sizes):
            with suppress(ShardError):
                batches = list(found[0][0].decode(data, sizes, first=0))
        # An error of ``decode`` names a wrong file and row, because the rows come from several files.
        if sum(map(len, batches)) != len(sizes):
            refuse_damaged_rows(found)
        held = CompactExamples(map(self._data.alter_rows, batches), self._data.layout)
        return held, np.arange(len(sizes)), np.concatenate([part.targets for _, part in found])

    def _begin_check(self, file: int) -> Shard:
        shard = self._data.shards[file]
        # Reading a whole file compares it, as by ``Decoder``.
        is_whole = not self._chunks.chunk_rows and not _has_single_rows(shard)
        return shard if is_whole else super()._begin_check(file)

    def _make_reader(self, file: int, shard: Shard) -> PieceReader:
        chunks = super()._make_reader(file, shard)
        if not _has_single_rows(shard):
            return chunks
        # Whole files are compared with their md5 before a row is used, as if they were decoded as a whole.
        check = None if self._chunks.chunk_rows or file not in self._checked else self._checked[file][1]
        return SingleRowReader(self._source, shard, self._chunks.sizes(*self._files[file]), chunks, check)


class ChunkPlaces(NamedTuple):
    """The places of the rows of a chunk in an open file.

    first: number of the chunk's first row in the file.
    offsets: byte offset of each row of the chunk, and the offset after the last one.
    files: the open file.
    """

    source: OpenedDataset
    shard: Shard
    reader: ShardReader
    first: int
    offsets: Sequence[int]
    files: ExitStack

    def list_ranges(self, rows: Array, files: list[IO[bytes]], starts: list[int], sizes: list[int]) -> None:
        """Append the file, the offset and the number of bytes of some rows to lists.

        rows: numbers of the rows in the file.
        """
        offsets = self.offsets
        numbers = (rows - self.first).tolist()
        files += [self.reader.row_file] * len(numbers)
        starts += [offsets[number] for number in numbers]
        sizes += [offsets[number + 1] - offsets[number] for number in numbers]

    def decode(self, data: bytes | memoryview, sizes: list[int], first: int) -> Iterator[ExampleBatch]:
        """Yield the examples in rows that were read from files of the same form.

        data: bytes of the rows.
        sizes: number of bytes of each row.
        first: number of the first row in this file, for errors.
        """
        for batch in self.reader.decode_rows(data, sizes, first) if sizes else ():
            yield self.source.convert_batch(batch, self.shard, first)
            first += len(batch)

    def check_row(self, row: int) -> None:
        """Raise ShardError, which names the file and the row, if a row cannot be decoded."""
        files, starts, sizes = list[IO[bytes]](), list[int](), list[int]()
        self.list_ranges(np.array([row]), files, starts, sizes)
        data, count = read_ranges(files, starts, sizes)
        if not count:
            raise ShardError(f"{self.shard.path}: record {row}: the file ends inside this record: truncated")
        for _ in self.decode(data, sizes, row):
            pass


def refuse_damaged_rows(found: list[tuple[ChunkPlaces, FileRows]]) -> None:
    """Raise ShardError for the first of some rows that cannot be decoded. The error names the file and the
    row.

    found: for each file or chunk, the places of its rows, and the rows.
    """
    for places, part in found:
        for row in part.rows.tolist():
            try:
                places.check_row(row)
            except ShardError:
                # To close the file raises another error if it was written to while it was open.
                with places.files:
                    raise
    raise AssertionError("rows that can be decoded one by one cannot be decoded together")


class SingleRowReader:
    """Reader of the places of rows in a file, which stays open. Several threads may use it.

    source: the dataset of the file.
    shard: the file.
    sizes: number of rows of each chunk.
    chunks: reader of the decoded chunks of the file. It is used if the file turns out not to have single
    rows.
    check: result of the comparison of the file with its md5. ``take`` waits for it. None: do not wait.
    """

    def __init__(
        self,
        source: OpenedDataset,
        shard: Shard,
        sizes: list[int],
        chunks: PieceReader,
        check: "Future[None] | None",
    ) -> None:
        self._source, self._shard, self._chunks, self._check = source, shard, chunks, check
        self._bounds = list(pairwise(accumulate(sizes, initial=0)))
        self._files, self._lock = ExitStack(), Lock()
        self._reader: ShardReader | None = None
        # The places of the last chunks. A stream needs the same chunk in many turns.
        self._places: OrderedDict[int, ChunkPlaces] = OrderedDict()

    def request(self, chunk: int) -> None:
        """Announce that ``take`` will be called with a chunk."""
        self._chunks.request(chunk)

    def take(self, chunk: int) -> CompactExamples | ChunkPlaces:
        """Return the places of a chunk's rows. If the file has no single rows, return the decoded chunk."""
        with self._lock:
            if chunk in self._places:
                return self._places[chunk]
            if self._reader is None:
                if self._check is not None:
                    self._check.result()
                self._reader = self._files.enter_context(self._source.open_shard(self._shard))
            (first, end), is_last = self._bounds[chunk], chunk == len(self._bounds) - 1
            # After the last chunk there must be no further row.
            offsets = self._reader.find_row_offsets(first, end - first + is_last)
            if offsets is None:
                decoded: CompactExamples = self._chunks.take(chunk)
                return decoded
            if len(offsets) != end - first + 1:
                found = f"{len(self._reader)} examples, expected {self._shard.examples}"
                raise ShardError(f"{self._shard.path}: holds {found}")
            places = ChunkPlaces(self._source, self._shard, self._reader, first, offsets, self._files)
            self._places[chunk] = places
            if len(self._places) > _KEPT_PLACES:
                self._places.popitem(last=False)
        return places

    def forget_others(self, needed: Sequence[int]) -> None:
        """Forget decoded chunks that are over. The places of rows take little memory."""
        self._chunks.forget_others(needed)

    def close(self) -> None:
        """Close the file. ShardError if it was written to while it was open."""
        self._chunks.close()
        with self._lock:
            self._reader = None
            self._places.clear()
            self._files.close()
