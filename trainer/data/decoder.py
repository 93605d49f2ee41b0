"""Files of a dataset, decoded in threads before their examples are asked for."""

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.examples.columns import Array
from trainer.data.compact import CompactExamples, compact_packs

_THREADS = 2


class Decoder:
    """The decoded files that are in use or will be soon; the lengths of files' examples.

    kept_lengths: files whose lengths are remembered.
    """

    def __init__(self, data: OpenedDataset, kept_lengths: int) -> None:
        self._data = data
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
        """The tokens of a file's examples; from the file itself where the dataset has no lengths."""
        if self._data.has_lengths:
            return np.asarray(self._data.lengths(self._data.shards[number]))
        self._submit(number)
        self._in_use.add(number)
        return np.diff(self.file(number).bounds)[:-1]  # the last example is a blank one

    def _submit(self, number: int) -> None:
        if number not in self._files:
            self._files[number] = self._threads.submit(self._decode, number)

    def _decode(self, number: int) -> CompactExamples:
        data, shard = self._data, self._data.shards[number]
        if data.layout.packing is None:
            return CompactExamples(data.batches(shard), data.layout)
        return compact_packs(data.packs(shard), data.layout)
