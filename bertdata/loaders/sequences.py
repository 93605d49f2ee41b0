"""Random access to the ids of a dataset's examples, for loaders with an order of their own.

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
from bertdata.examples.dynamic_masking.masker import unmask
from bertdata.examples.groups import MASKS, has_group

_NARROW_VOCABULARY = 1 << 16


class IndexedSequences(Protocol):
    """The ids of examples by number, counted over all shards in order."""

    @property
    def digest(self) -> str:
        """A digest of the dataset, the same at another path."""
        ...

    @property
    def lengths(self) -> Array:
        """The ids of each, as int64."""
        ...

    def take(self, numbers: Array, most: int) -> Array:
        """The ids of these examples one behind the other, at most so many of each, 16 or 32 bits each."""
        ...


class StoredSequences:
    """The examples of an opened dataset, without masks, decoded once, when the first are taken.

    Their ids then lie in a file without a name in the temporary directory, 2 or 4 bytes each, mapped into
    memory: the system keeps of them what there is room for. Held are 8 bytes an example. Errors are those of
    reading the shards. DatasetError where an example differs from its listed length.
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
        """The ids of all examples, and 0 with the end of each example's."""
        size = self._data.vocabulary_size
        kind = np.dtype(np.uint16 if size is not None and size <= _NARROW_VOCABULARY else np.uint32)
        lengths = []
        with TemporaryFile() as file:
            for shard in self._data.shards:
                for batch in self._data.batches(shard):
                    if has_group(type(batch), MASKS):
                        batch = unmask(batch)
                    file.write(np.ascontiguousarray(batch.ids, kind).data)
                    lengths.append(columns.lengths(batch.ends))
            file.flush()
            ids: Array = np.asarray(np.memmap(file, kind, "r"))
        bounds = np.insert(np.cumsum(np.concatenate(lengths), dtype=np.int64), 0, 0)
        if self._data.has_lengths and len(wrong := np.flatnonzero(np.diff(bounds) != self.lengths)):
            raise DatasetError(
                f"{self._data.name}: example {wrong[0]} has another length than the dataset's lengths say; "
                "bertdata verify-md5 names the file"
            )
        return ids, bounds
