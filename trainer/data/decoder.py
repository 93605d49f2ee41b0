"""Decoding of files in threads, before their examples are needed."""

import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from threading import Lock
from typing import Any, Protocol

import numpy as np

from bertdata.dataset.reader import Shard
from bertdata.errors import ShardError
from bertdata.examples.columns import Array
from bertdata.io import storage
from trainer.data.examples import CompactExamples, Piece, Rows
from trainer.data.file_checks import FileChecks
from trainer.data.order import DecodedPiece, FileRows
from trainer.data.reading import Chunks

_DECODERS = 2  # threads
_KEPT_CHUNKS = 2
_UNUSED_READERS = 16
"""Number of files beyond one for each stream that stay open although they are not needed at present."""
_KEPT_ROUNDS = 4
"""Number of rounds for which a file stays open after it was last needed. In a round, each stream has a turn.

A worker may get no rows of a stream's turn if another worker gets them all.
"""


class Decoder:
    """Decoder of files, which works in threads before they are needed. It remembers the lengths of their
    examples.

    most_open_files: number of files that may stay open until they are needed again.
    kept_lengths: number of files whose lengths are remembered.
    """

    most_open_files = 0

    def __init__(self, rows: Rows, kept_lengths: int) -> None:
        self._rows, self._data = rows, rows.data
        self._pieces: dict[DecodedPiece, Future[Any]] = {}
        self._in_use: set[DecodedPiece] = set()
        self._threads = ThreadPoolExecutor(_DECODERS)
        self.lengths = lru_cache(maxsize=kept_lengths)(self._find_lengths)
        self._checks = FileChecks()
        # For each file, its version when its comparison with its md5 began, and the comparison's result.
        self._checked: dict[int, tuple[tuple[int, ...], Future[None]]] = {}

    def start(self, now: Iterable[DecodedPiece], coming: Iterable[DecodedPiece], place: int) -> None:
        """Start to decode pieces of files in threads. Forget pieces of the previous call that are no longer
        needed.

        now: what is needed first.
        coming: what is needed later.
        place: place in the order that the training has reached (``Order.find_place``).
        """
        used = list(now)
        # a dict without values serves as a set that keeps this order
        needed = dict.fromkeys([*used, *coming])
        for piece in self._in_use - needed.keys():
            del self._pieces[piece]
        for piece in needed:
            self._submit(piece)
        self._in_use = set(used)

    def take(self, part: FileRows) -> Piece:
        """Return rows of a file that is decoded: the decoded examples, the indices of the rows in them, and
        the place of each row in the result. Waits until the file is decoded.

        ``start`` must have been called with the piece of these rows.
        """
        return self._pieces[part.piece].result(), part.rows, part.targets

    def take_all(self, parts: Sequence[FileRows]) -> list[Piece]:
        """Return rows of several files, as ``take`` does for the rows of a file."""
        return [self.take(part) for part in parts]

    def begin_checks(self, files: Iterable[int]) -> None:
        """Start to compare files with their md5s in a thread, although none of their rows may be needed.

        files: numbers of the files.
        """
        for file in files:
            shard = self._data.shards[file]
            if shard.md5 is None:
                continue
            # The thread reports a missing file.
            is_local = not storage.is_remote(shard.path) and storage.exists(shard.path)
            version = storage.read_version(shard.path) if is_local else ()
            self._checked[file] = version, self._checks.begin(shard)

    def await_checks(self, files: Iterable[int], seconds: float) -> list[int]:
        """Wait until files are compared with their md5s. Return those that are not compared after a time.

        Files that are compared before their rows are used, or that no manifest lists, are left out.
        files: numbers of the files.
        seconds: longest time to wait.
        Raises ShardError if the md5 of one of the files is not the one in the manifest.
        """
        results = {self._checked[file][1]: file for file in files if file in self._checked}
        left = self._checks.await_results(results, seconds)
        return [file for result, file in results.items() if result in left]

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._checks.close()

    def decode(self, piece: DecodedPiece) -> Any:
        """Return the decoded examples of a file."""
        return self._rows.decode(self._data.shards[piece[0]])

    def _find_lengths(self, number: int) -> Array:
        """Return the number of tokens of each example of a file.

        They are read from the dataset's file with lengths. If there is none, the file is decoded. ShardError
        for an example that is empty or longer than max_seq_length.
        """
        shard, most = self._data.shards[number], self._data.layout.max_seq_length
        if not self._data.has_lengths:
            whole = number, 0
            self._submit(whole)
            self._in_use.add(whole)
            lengths: Array = self._pieces[whole].result().lengths
            return lengths
        found = np.asarray(self._data.lengths(shard))
        if len(wrong := np.flatnonzero((found > most) | (found == 0))):
            record = f"{shard.lengths_path}: record {wrong[0]}"
            raise ShardError(f"{record}: {found[wrong[0]]} tokens, expected 1 to {most}")
        return found

    def _submit(self, piece: DecodedPiece) -> None:
        """Start to decode a piece unless its decoding was started before."""
        if piece not in self._pieces:
            self._pieces[piece] = self._threads.submit(self.decode, piece)


class ChunkDecoder(Decoder):
    """Decoder of chunks of files in threads. Files that are being read stay open.

    Files that a manifest lists are compared with their md5 in another thread while their first chunks are
    used, because with hundreds of open files it would take long to do that before the first update. The next
    call of ``start`` raises ShardError if a file is damaged, and ``await_checks`` waits for the comparison. A
    remote file is compared before it is used.

    chunks: the division of files into chunks.
    kept_lengths: number of files whose lengths are remembered.
    streams: number of streams. As many files stay open. The next batches need only some streams, and reading
    a file again from its beginning whenever it is the turn of its stream would take long.
    round_rows: number of rows in which each stream has a turn. A file that no turn of some rounds has needed
    was read to its end. It is closed, because a cache cannot drop an open file.
    """

    def __init__(self, rows: Rows, chunks: Chunks, kept_lengths: int, streams: int, round_rows: int) -> None:
        super().__init__(rows, kept_lengths)
        self._chunks, self._files = chunks, rows.data.file_rows
        # The open files, the most recently needed last, and the place at which each was last needed.
        self._readers: OrderedDict[int, PieceReader] = OrderedDict()
        self._last_places = dict[int, int]()
        self._kept_readers = streams + _UNUSED_READERS
        # A remote file without a copy is open at its store and as a temporary file.
        is_remote = any(storage.is_remote(shard.path) for shard in rows.data.shards)
        self.most_open_files = self._kept_readers * (2 if is_remote else 1)
        self._kept_rows = _KEPT_ROUNDS * round_rows

    def start(self, now: Iterable[DecodedPiece], coming: Iterable[DecodedPiece], place: int) -> None:
        """Start to decode chunks in threads, and close files that are no longer needed.

        now: chunks that the next batches need.
        coming: chunks that are needed after them.
        place: place in the order that the training has reached.
        Raises ShardError if the md5 of a file that was opened earlier is not the one in the manifest.
        """
        for _, check in self._checked.values():
            if check.done():
                check.result()
        used, later = list(now), list(coming)
        files = dict.fromkeys(file for file, _ in [*used, *later])
        for file in files:
            if file not in self._readers:
                self._readers[file] = self._open(file)
            self._readers.move_to_end(file)
            self._last_places[file] = place
        needed = defaultdict[int, list[int]](list)
        for file, chunk in used:
            needed[file].append(chunk)
        for file, chunks in needed.items():
            self._readers[file].forget_others(chunks)
        super().start(used, later, place)
        for file in [one for one in self._readers if one not in files]:
            is_over = self._last_places[file] + self._kept_rows <= place
            if not is_over and len(self._readers) <= self._kept_readers:
                break  # the files behind were needed later
            self._close_file(file)

    def take(self, part: FileRows) -> Piece:
        """Return rows of a chunk that is decoded: the decoded examples, the indices of the rows in them, and
        the place of each row in the result. Waits until the chunk is decoded.
        """
        held, rows, targets = super().take(part)
        start = self._chunks.start(*self._files[part.file], part.chunk)
        return held, rows - start, targets

    def decode(self, piece: DecodedPiece) -> Any:
        """Return the decoded examples of a chunk of a file."""
        file, chunk = piece
        return self._readers[file].take(chunk)

    def close(self) -> None:
        """End the threads, and close the files."""
        super().close()
        for reader in list(self._readers.values()):
            # A training that ends reports no further errors.
            with suppress(ShardError):
                reader.close()

    def _submit(self, piece: DecodedPiece) -> None:
        if piece not in self._pieces:
            self._readers[piece[0]].request(piece[1])
        super()._submit(piece)

    def _close_file(self, file: int) -> None:
        """Close a file, and forget its chunks."""
        del self._last_places[file]
        self._readers.pop(file).close()
        for piece in [one for one in self._pieces if one[0] == file]:
            del self._pieces[piece]

    def _open(self, file: int) -> "PieceReader":
        """Return a reader of a file's chunks, and start to compare the file with its md5."""
        return self._make_reader(file, self._begin_check(file))

    def _begin_check(self, file: int) -> Shard:
        """Start to compare a local file with its md5. Return the file, marked as compared."""
        shard = self._data.shards[file]
        if shard.md5 is None or storage.is_remote(shard.path):
            return shard
        version = storage.read_version(shard.path)
        if file not in self._checked or self._checked[file][0] != version:
            self._checked[file] = version, self._checks.begin(shard)
        return replace(shard, checked=version)

    def _make_reader(self, file: int, shard: Shard) -> "PieceReader":
        """Return a reader of a file's chunks.

        file: number of the file.
        shard: the file.
        """
        sizes = self._chunks.sizes(*self._files[file])
        return ChunkReader(lambda: self._rows.decode_chunks(shard, sizes))


class PieceReader(Protocol):
    """Interface of a reader of the chunks of a file, which several threads may use."""

    def request(self, chunk: int) -> None:
        """Announce that ``take`` will be called with a chunk."""
        ...

    def take(self, chunk: int) -> Any:
        """Return what a decoder needs to have of a chunk before it can return the chunk's rows."""
        ...

    def forget_others(self, needed: Sequence[int]) -> None:
        """Forget chunks that are over.

        needed: the chunks with the next rows. The rows of a file are needed chunk by chunk.
        """
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class ChunkReader:
    """Reader of the chunks of a file, usually one after the other. Several threads may use it.

    The last chunks are kept until they are over. Reading an earlier one begins at the start of the file
    again.
    open_chunks: function that begins to read the file, and yields its chunks.
    """

    def __init__(self, open_chunks: Callable[[], Iterator[CompactExamples]]) -> None:
        self._open_chunks, self._lock = open_chunks, Lock()
        self._chunks: Iterator[CompactExamples] = iter(())
        self._next = sys.maxsize  # number of the chunk that ``_chunks`` yields next. Nothing is open yet.
        self._kept: dict[int, CompactExamples] = {}
        self._requested = set[int]()

    def request(self, chunk: int) -> None:
        """Announce that ``take`` will be called with a chunk. It is kept if it is read before that."""
        self._requested.add(chunk)

    def take(self, chunk: int) -> CompactExamples:
        """Return a chunk of the file."""
        with self._lock:
            self._requested.discard(chunk)
            if chunk not in self._kept and chunk < self._next:
                self._close_file()
                self._chunks, self._next = self._open_chunks(), 0
            while chunk not in self._kept:
                try:
                    self._kept[self._next] = next(self._chunks)
                except BaseException:
                    self._close_file()  # another thread that takes a later chunk must meet the same error
                    raise
                self._next += 1
                for old in [one for one in self._kept if one <= self._next - 1 - _KEPT_CHUNKS]:
                    if old not in self._requested and old != chunk:
                        del self._kept[old]
            return self._kept[chunk]

    def forget_others(self, needed: Sequence[int]) -> None:
        """Forget the chunks before the needed ones, and those of the last epoch.

        needed: the chunks with the next rows.
        """
        # While a chunk is decoded, nothing is forgotten, because the caller must not wait. It calls again.
        if not self._lock.acquire(blocking=False):
            return
        try:
            # Near the end of an epoch, the file may already be read again, for the next epoch. The needed
            # chunks are then behind the place that the reader has reached.
            if max(needed) < self._next:
                over = [one for one in self._kept if not min(needed) <= one < self._next]
                for old in over:
                    if old not in self._requested:
                        del self._kept[old]
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._close_file()
            self._kept.clear()

    def _close_file(self) -> None:
        """Close the file if it is open. The next chunk is then read from the beginning of the file."""
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()
        self._chunks, self._next = iter(()), sys.maxsize
