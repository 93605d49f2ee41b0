"""Files of a dataset, decoded in threads before their examples are asked for."""

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache

import numpy as np

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.errors import ShardError
from bertdata.examples.columns import Array
from trainer.data.compact import CompactExamples, compact_packs

_THREADS = 2


class Decoder:
    """The decoded files that are in use or will be soon; the lengths of files' examples.

    kept_lengths: files whose lengths are remembered. checks_lengths: a file's examples must have the listed
    lengths.
    """

    def __init__(self, data: OpenedDataset, kept_lengths: int, *, checks_lengths: bool = False) -> None:
        self._data = data
        self._checks_lengths = checks_lengths and data.has_lengths
        self._files: dict[int, Future[CompactExamples]] = {}
        self._in_use: set[int] = set()
        self._threads = ThreadPoolExecutor(_THREADS)
        self.lengths = lru_cache(maxsize=kept_lengths)(self._find_lengths)

    @property
    def held(self) -> set[int]:
        """The files that are decoded or will be."""
        return set(self._files)

    def start(self, now: Iterable[int], coming: Iterable[int]) -> None:
        """Start decoding the files of both; drop files that were used and are in neither."""
        used = list(now)
        needed = dict.fromkeys([*used, *coming])  # a set that keeps this order
        for file in self._in_use - needed.keys():
            del self._files[file]
        for file in needed:
            self._submit(file)
        self._in_use = set(used)

    def file(self, number: int) -> CompactExamples:
        """The examples of a file that ``start`` was asked for."""
        return self._files[number].result()

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _find_lengths(self, number: int) -> Array:
        """The tokens of a file's examples; from the file itself where the dataset has no lengths.

        ShardError names the first example that is longer than the layout allows.
        """
        if self._data.has_lengths:
            shard, most = self._data.shards[number], self._data.layout.max_seq_length
            found = np.asarray(self._data.lengths(shard))
            if len(wrong := np.flatnonzero((found > most) | (found == 0))):
                first = wrong[0]
                raise ShardError(
                    f"{shard.lengths_path}: record {first}: {found[first]} tokens, expected 1 to {most}"
                )
            return found
        self._submit(number)
        self._in_use.add(number)
        return _lengths_of(self.file(number))

    def _submit(self, number: int) -> None:
        if number not in self._files:
            self._files[number] = self._threads.submit(self._decode, number)

    def _decode(self, number: int) -> CompactExamples:
        data, shard = self._data, self._data.shards[number]
        if data.layout.packing is None:
            held = CompactExamples(data.batches(shard), data.layout)
            if self._checks_lengths:
                _compare(shard, _lengths_of(held), np.asarray(data.lengths(shard)))
            return held
        return compact_packs(data.packs(shard), data.layout)


def _lengths_of(held: CompactExamples) -> Array:
    """The tokens of each example, without the blank one at the end."""
    return np.diff(held.bounds.astype(np.int64))[:-1]


def _compare(shard: Shard, found: Array, listed: Array) -> None:
    """ShardError where the lengths file of a shard is another shard's."""
    if len(wrong := np.flatnonzero(found != listed)):
        first = wrong[0]
        tokens = f"{found[first]} tokens, but {listed[first]} in {shard.lengths_path}"
        raise ShardError(f"{shard.path}: record {first}: {tokens}")
