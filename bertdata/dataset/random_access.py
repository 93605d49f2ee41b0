"""Random access to the examples of a dataset by their numbers, in any order and with bounded memory.

This module imports NumPy.
"""

import os
import pickle
import weakref
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any, Protocol, cast

import numpy as np

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.errors import ShardError
from bertdata.examples import columns
from bertdata.io import storage
from bertdata.records import ExampleBatch

_CACHE_BYTES = 64 << 20
_OPEN_SHARDS = 64
_SPOOLED_ROWS = 64


class RandomAccess:
    """Random access to the examples of a dataset. They are numbered over all shards in order.

    An object can be pickled and is safe for use in several threads and after a fork. It caches decoded
    examples (up to 64 MiB) and open shards (up to 64). Examples are decoded in pieces: 16 examples of a
    TFRecord file, a block of an HDF5 file, or a row group of a Parquet file. A file that can only be read in
    order, such as packed rows, is decoded once into a temporary file. The md5 of a shard is checked when the
    shard is opened, and again only if the file has changed. A remote shard is downloaded when it is opened.
    """

    def __init__(self, data: OpenedDataset) -> None:
        self._data = data
        self._ends = list(accumulate(shard.examples for shard in data.shards))
        self._reset_caches()

    def _reset_caches(self) -> None:
        """Start with empty caches and no open files, in this process."""
        self._process, self._lock = os.getpid(), Lock()
        self._open: OrderedDict[int, _OpenShard] = OrderedDict()
        # Close the files before the interpreter takes its modules apart, after which closing would fail.
        weakref.finalize(self, _close_shards, self._open)
        self._versions: dict[
            int, tuple[int, ...]
        ] = {}  # for each shard, the version of the file (such as its time) whose md5 was checked
        self._indexes: dict[int, Any] = {}
        self._cache: OrderedDict[tuple[int, int], ExampleBatch] = OrderedDict()
        self._cached_bytes = 0

    def __reduce__(self) -> tuple[type["RandomAccess"], tuple[OpenedDataset]]:
        return RandomAccess, (self._data,)

    def read_batch(self, numbers: Sequence[int]) -> ExampleBatch:
        """Return the examples with these numbers, in this order.

        numbers: indices of examples, from 0. There must be at least one.
        """
        # After a fork, parent and child process share the position in every open file, so the child opens its
        # files itself.
        if os.getpid() != self._process:
            self._reset_caches()
        with self._lock:
            return self._read_in_pieces(numbers)

    def _read_in_pieces(self, numbers: Sequence[int]) -> ExampleBatch:
        """Read the examples piece by piece, then put them in the order that the caller asked for."""
        # Read the examples in ascending order, so that examples of the same piece follow each other and each
        # piece is decoded only once. For numbers [7, 2, 3], order is [1, 2, 0].
        order = sorted(range(len(numbers)), key=numbers.__getitem__)
        places = groupby((self._locate_example(numbers[at]) for at in order), key=lambda place: place[:2])
        found = [
            self._take_examples(shard, piece, [place for *_, place in group])
            for (shard, piece), group in places
        ]
        batch = found[0] if len(found) == 1 else columns.join_batches(found)
        return batch if order == list(range(len(order))) else columns.take_examples(batch, np.argsort(order))

    def _locate_example(self, number: int) -> tuple[int, int, int]:
        """Return three numbers: the index of the example's shard, its piece in the shard, and its position in
        the piece.
        """
        shard = bisect_right(self._ends, number)
        return shard, *self._open_shard(shard).find_place(number - (self._ends[shard - 1] if shard else 0))

    def _take_examples(self, shard: int, piece: int, places: list[int]) -> ExampleBatch:
        """Return the examples at these places of a piece of a shard."""
        batch = self._read_piece(shard, piece)
        if len(places) == 1:
            return columns.slice_batch(batch, places[0], places[0] + 1)
        return columns.take_examples(batch, np.array(places))

    def _read_piece(self, shard: int, piece: int) -> ExampleBatch:
        """Return the examples of a piece of a shard, from the cache or by decoding them."""
        key = shard, piece
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        batch = self._open_shard(shard).read_piece(piece)
        self._cache[key] = batch
        self._cached_bytes += _count_bytes(batch)
        while self._cached_bytes > _CACHE_BYTES and len(self._cache) > 1:
            self._cached_bytes -= _count_bytes(self._cache.popitem(last=False)[1])
        return batch

    def _open_shard(self, number: int) -> "_OpenShard":
        """Return an open shard from the cache. Open the shard if it is not in the cache."""
        if number in self._open:
            self._open.move_to_end(number)
            return self._open[number]
        while len(self._open) >= _OPEN_SHARDS:
            self._open.popitem(last=False)[1].close()
        shard = self._data.shards[number]
        version = storage.read_version(shard.path)
        # Files on remote storage have no version, so they are always checked again.
        if self._versions.get(number) == version != ():
            opened = _open_shard_for_access(self._data, shard, version, self._indexes[number])
        else:
            opened = _open_shard_for_access(self._data, shard)
        self._versions[number], self._indexes[number] = version, opened.index
        self._open[number] = opened
        return opened


def _close_shards(opened: "OrderedDict[int, _OpenShard]") -> None:
    """Close all shards that are open."""
    while opened:
        opened.popitem()[1].close()


class _PieceReader(Protocol):
    """Interface of objects that decode one piece (a few consecutive examples) of a shard at a time."""

    def read_piece(self, number: int) -> ExampleBatch: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class _OpenShard:
    """A shard that stays open for random access.

    pieces: reader of the shard's pieces (groups of consecutive examples).
    ends: for each piece, the number of examples up to its end.
    index: positions of the pieces in the file, with which it can quickly be opened again.
    is_altered: True if ``pieces`` returns the examples as the dataset does, for example with newly drawn
        masks.
    """

    data: OpenedDataset
    shard: Shard
    pieces: _PieceReader
    ends: Sequence[int]
    files: ExitStack
    index: Any
    is_altered: bool

    def find_place(self, number: int) -> tuple[int, int]:
        """Return the piece that contains example ``number`` of the shard, and the example's position in the
        piece.
        """
        piece = bisect_right(self.ends, number)
        return piece, number - self._find_first_example(piece)

    def read_piece(self, number: int) -> ExampleBatch:
        """Return the examples of a piece as the dataset returns them, for example with newly drawn masks."""
        batch = self.pieces.read_piece(number)
        if self.is_altered:
            return batch
        first = self._find_first_example(number)
        return self.data.alter_batch(
            self.data.stored.convert_batch(batch, self.shard, first), self.shard, first
        )

    def _find_first_example(self, piece: int) -> int:
        return self.ends[piece - 1] if piece else 0

    def close(self) -> None:
        self.files.close()


def _open_shard_for_access(
    data: OpenedDataset, shard: Shard, checked: tuple[int, ...] | None = None, index: Any = None
) -> _OpenShard:
    """Open a shard for random access.

    checked: version of the file whose md5 was checked when it was opened before. None if it was not opened
        before.
    index: positions of the pieces, which were found when the file was opened before. None if it was not.

    Raises ShardError if the shard does not match its manifest entry or is damaged.
    """
    with ExitStack() as stack:
        kind, ends, is_altered = type(data), None, False
        # Pieces can be read directly if the dataset returns the examples as they are stored, or if it changes
        # them only in ``alter_batch``. A dataset with its own ``batches`` must be read in order.
        if kind.batches is OpenedDataset.batches or kind.alter_batch is not OpenedDataset.alter_batch:
            reader = stack.enter_context(
                data.stored.open_shard(replace(shard, checked=checked or shard.checked))
            )
            reader.index = index
            pieces: _PieceReader = reader
            ends, index = reader.find_piece_ends(), reader.index
        if ends is None:
            spool = cast(IO[bytes], TemporaryFile())  # noqa: SIM115
            spooled = _SpooledShard(stack.enter_context(spool), data, shard)
            pieces, ends, is_altered = spooled, spooled.ends, True
        if (found := ends[-1] if ends else 0) != shard.examples:
            raise ShardError(f"{shard.path}: holds {found} examples, expected {shard.examples}")
        files = stack.pop_all()
    return _OpenShard(
        data=data, shard=shard, pieces=pieces, ends=ends, files=files, index=index, is_altered=is_altered
    )


class _SpooledShard:
    """The examples of a shard, copied to a temporary file from which they can be read in any order."""

    def __init__(self, file: IO[bytes], data: OpenedDataset, shard: Shard) -> None:
        self._file, self._starts, sizes = file, [0], []
        for batch in columns.regroup_batches(data.batches(shard), _SPOOLED_ROWS):
            file.write(pickle.dumps(batch, pickle.HIGHEST_PROTOCOL))
            self._starts.append(file.tell())
            sizes.append(len(batch))
        self.ends = list(accumulate(sizes))

    def read_piece(self, number: int) -> ExampleBatch:
        start, stop = self._starts[number : number + 2]
        self._file.seek(start)
        batch: ExampleBatch = pickle.loads(self._file.read(stop - start))
        return batch


def _count_bytes(batch: ExampleBatch) -> int:
    return sum(values.nbytes for values in batch.values())
