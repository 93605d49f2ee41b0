"""Random access to the ids of a dataset's examples, for loaders that choose the order of examples themselves.

Needs NumPy when it is imported.
"""

from functools import cached_property
from tempfile import TemporaryFile
from typing import Protocol

import numpy as np

from bertdata._native import available, kernels
from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import DatasetError
from bertdata.examples import columns
from bertdata.examples.columns import Array
from bertdata.examples.dynamic_masking.masker import remove_masks
from bertdata.examples.groups import MASKS, has_group

_NARROW_VOCABULARY = 1 << 16


class IndexedSequences(Protocol):
    """Interface of an object that returns the ids of examples by number.

    Numbers count through all shards in order.
    """

    @property
    def digest(self) -> str:
        """Digest that identifies the dataset's contents. It does not depend on the dataset's path."""
        ...

    @property
    def lengths(self) -> Array:
        """Number of ids of each example, int64 (N,)."""
        ...

    def take(self, numbers: Array, most: int) -> Array:
        """Return the ids of these examples, one example after another, as integers of 16 or 32 bits.

        numbers: numbers of the examples.
        most: most ids to return from one example. Longer examples are cut.
        """
        ...


class StoredSequences:
    """Random access to the ids of an opened dataset's examples, with masks removed.

    When the first example is read, all examples are decoded into an unnamed temporary file with 2 or 4 bytes
    per id. The file is memory-mapped, so the system decides how much of it stays in memory. This object
    itself needs 8 bytes per example. Raises ShardError if a shard is damaged. Raises DatasetError if an
    example's length differs from the dataset's list of lengths.
    """

    def __init__(self, data: OpenedDataset) -> None:
        self._data = data

    @property
    def digest(self) -> str:
        return self._data.digest

    @cached_property
    def lengths(self) -> Array:
        if not self._data.has_lengths:
            return np.diff(self._ids[1])
        found = [np.asarray(self._data.lengths(shard)) for shard in self._data.shards]
        return np.concatenate(found).astype(np.int64)

    def take(self, numbers: Array, most: int) -> Array:
        ids, bounds = self._ids
        if available():
            taken: Array = np.asarray(kernels.take_sequences(ids, bounds, numbers, most))
            return taken
        starts = bounds[numbers]
        ends = np.minimum(bounds[numbers + 1], starts + most)
        pieces = [ids[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        return np.concatenate(pieces) if pieces else ids[:0]

    @cached_property
    def _ids(self) -> tuple[Array, Array]:
        """Return the ids of all examples, and where each example begins.

        Example i is ``ids[bounds[i]:bounds[i + 1]]``, so the bounds end with the number of ids.
        """
        size = self._data.vocabulary_size
        kind = np.dtype(np.uint16 if size is not None and size <= _NARROW_VOCABULARY else np.uint32)
        lengths = []
        # The memory mapping stays valid after the temporary file is closed and deleted.
        with TemporaryFile() as file:
            for shard in self._data.shards:
                for batch in self._data.batches(shard):
                    if has_group(type(batch), MASKS):
                        batch = remove_masks(batch)
                    file.write(np.ascontiguousarray(batch.ids, kind).data)
                    lengths.append(columns.compute_lengths(batch.ends))
            file.flush()
            ids: Array = np.asarray(np.memmap(file, kind, "r"))
        # Examples of 3, 2 and 4 ids, for example, give the bounds [0, 3, 5, 9].
        bounds = np.insert(np.cumsum(np.concatenate(lengths), dtype=np.int64), 0, 0)
        if self._data.has_lengths and len(wrong := np.flatnonzero(np.diff(bounds) != self.lengths)):
            raise DatasetError(
                f"{self._data.name}: example {wrong[0]} has another length than the dataset's lengths say; "
                "bertdata verify-md5 names the file"
            )
        return ids, bounds
