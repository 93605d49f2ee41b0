"""Read examples of a dataset by their numbers, in any order and with bounded memory.

This module imports NumPy.
"""

import os
import pickle
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
    """Random access to examples, numbered over all shards in order.

    Picklable, and safe for threads and forks. Decoded examples (up to 64 MiB) and open shards (up to 64) are
    cached. A container decodes a run of examples
    at a time: 16 of TFRecord, a block of HDF5, a row group of Parquet. A file that can only be read in order,
    such as packed rows or another program's layout, is decoded once into a temporary file. A shard's md5 is
    checked when it is opened, but not again while the file stays unchanged. A remote shard is downloaded when
    it is opened.
    """

    def __init__(self, data: OpenedDataset) -> None:
        self._data = data
        self._ends = list(accumulate(shard.examples for shard in data.shards))
        self._start()

    def _start(self) -> None:
        self._process, self._lock = os.getpid(), Lock()
        self._open: OrderedDict[int, _OpenShard] = OrderedDict()
        self._versions: dict[int, tuple[int, ...]] = {}  # file versions whose md5 was checked
        self._indexes: dict[int, Any] = {}
        self._cache: OrderedDict[tuple[int, int], ExampleBatch] = OrderedDict()
        self._cached_bytes = 0

    def __reduce__(self) -> tuple[type["RandomAccess"], tuple[OpenedDataset]]:
        return RandomAccess, (self._data,)

    def batch(self, numbers: Sequence[int]) -> ExampleBatch:
        """Return the examples with these numbers, in this order. numbers: from 0 on, not empty."""
        # After a fork, parent and child share the position of every open file. The child must open its own.
        if os.getpid() != self._process:
            self._start()
        with self._lock:
            return self._batch(numbers)

    def _batch(self, numbers: Sequence[int]) -> ExampleBatch:
        # numbers [7, 2, 3] -> order [1, 2, 0]. Sorted, all examples of a run follow each other, so that each
        # run is decoded once.
        """Read the examples run by run, then restore the caller's order."""
        order = sorted(range(len(numbers)), key=numbers.__getitem__)
        places = groupby((self._locate(numbers[at]) for at in order), key=lambda place: place[:2])
        found = [
            self._take_examples(shard, piece, [place for *_, place in group])
            for (shard, piece), group in places
        ]
        batch = found[0] if len(found) == 1 else columns.join(found)
        return batch if order == list(range(len(order))) else columns.take(batch, np.argsort(order))

    def _locate(self, number: int) -> tuple[int, int, int]:
        """Return the example's shard, its run in the shard, and its place in the run."""
        shard = bisect_right(self._ends, number)
        return shard, *self._open_shard(shard).place(number - (self._ends[shard - 1] if shard else 0))

    def _take_examples(self, shard: int, piece: int, places: list[int]) -> ExampleBatch:
        batch = self._read_piece(shard, piece)
        if len(places) == 1:
            return columns.cut(batch, places[0], places[0] + 1)
        return columns.take(batch, np.array(places))

    def _read_piece(self, shard: int, piece: int) -> ExampleBatch:
        """Return a decoded run of examples, from the cache if possible."""
        key = shard, piece
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        batch = self._open_shard(shard).piece(piece)
        self._cache[key] = batch
        self._cached_bytes += _count_bytes(batch)
        while self._cached_bytes > _CACHE_BYTES and len(self._cache) > 1:
            self._cached_bytes -= _count_bytes(self._cache.popitem(last=False)[1])
        return batch

    def _open_shard(self, number: int) -> "_OpenShard":
        """Return an open shard, from the cache if possible."""
        if number in self._open:
            self._open.move_to_end(number)
            return self._open[number]
        while len(self._open) >= _OPEN_SHARDS:
            self._open.popitem(last=False)[1].close()
        shard = self._data.shards[number]
        version = storage.read_version(shard.path)
        # Remote files have no version and are always checked again.
        if self._versions.get(number) == version != ():
            opened = _open(self._data, shard, version, self._indexes[number])
        else:
            opened = _open(self._data, shard)
        self._versions[number], self._indexes[number] = version, opened.index
        self._open[number] = opened
        return opened


class _Pieces(Protocol):
    """Stored examples in runs, each of which can be decoded alone."""

    def piece(self, number: int) -> ExampleBatch: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class _OpenShard:
    """A shard that is kept open.

    ends: number of examples up to the end of each run.
    index: the reader's index, which makes opening the file again cheap.
    is_altered: True if ``pieces`` already holds the examples as the dataset returns them.
    """

    data: OpenedDataset
    shard: Shard
    pieces: _Pieces
    ends: Sequence[int]
    files: ExitStack
    index: Any
    is_altered: bool

    def place(self, number: int) -> tuple[int, int]:
        """Return the run that holds this example of the shard, and the example's place in the run."""
        piece = bisect_right(self.ends, number)
        return piece, number - self._first_example(piece)

    def piece(self, number: int) -> ExampleBatch:
        """Return the examples of a run, altered as the dataset alters them."""
        batch = self.pieces.piece(number)
        if self.is_altered:
            return batch
        first = self._first_example(number)
        return self.data.altered(self.data.stored.checked(batch, self.shard, first), self.shard, first)

    def _first_example(self, piece: int) -> int:
        return self.ends[piece - 1] if piece else 0

    def close(self) -> None:
        self.files.close()


def _open(
    data: OpenedDataset, shard: Shard, checked: tuple[int, ...] | None = None, index: Any = None
) -> _OpenShard:
    """Open a shard for random access. Errors as for reading.

    checked, index: the file's version and the reader's index from an earlier opening, if any.
    """
    with ExitStack() as stack:
        kind, ends, is_altered = type(data), None, False
        # Read runs directly from the file if the dataset's examples are the stored ones, or if it can alter a
        # batch of them. A dataset that overrides only ``batches`` has to be read in order.
        if kind.batches is OpenedDataset.batches or kind.altered is not OpenedDataset.altered:
            reader = stack.enter_context(
                data.stored.open_shard(replace(shard, checked=checked or shard.checked))
            )
            reader.index = index
            pieces: _Pieces = reader
            ends, index = reader.piece_ends(), reader.index
        if ends is None:
            spool = cast(IO[bytes], TemporaryFile())  # noqa: SIM115
            spooled = _Spooled(stack.enter_context(spool), data, shard)
            pieces, ends, is_altered = spooled, spooled.ends, True
        if (found := ends[-1] if ends else 0) != shard.examples:
            raise ShardError(f"{shard.path}: holds {found} examples, expected {shard.examples}")
        files = stack.pop_all()
    return _OpenShard(
        data=data, shard=shard, pieces=pieces, ends=ends, files=files, index=index, is_altered=is_altered
    )


class _Spooled:
    """Examples of a shard that can only be read in order, stored in a temporary file."""

    def __init__(self, file: IO[bytes], data: OpenedDataset, shard: Shard) -> None:
        self._file, self._starts, sizes = file, [0], []
        for batch in columns.regroup(data.batches(shard), _SPOOLED_ROWS):
            file.write(pickle.dumps(batch, pickle.HIGHEST_PROTOCOL))
            self._starts.append(file.tell())
            sizes.append(len(batch))
        self.ends = list(accumulate(sizes))

    def piece(self, number: int) -> ExampleBatch:
        start, stop = self._starts[number : number + 2]
        self._file.seek(start)
        batch: ExampleBatch = pickle.loads(self._file.read(stop - start))
        return batch


def _count_bytes(batch: ExampleBatch) -> int:
    return sum(values.nbytes for values in batch.values())
