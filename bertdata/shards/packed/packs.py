"""Define batches of packed rows, and the interface of the classes that write and read packed rows."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from bertdata.records import Buffer, ExampleBatch, ShardLayout
from bertdata.shards.protocol import ShardReader

if TYPE_CHECKING:
    from bertdata.examples.columns import Array


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PackBatch:
    """A batch of packed rows. Row i holds the examples ``ends[i-1]`` to ``ends[i] - 1``, from left to right.

    examples: the examples of all rows, unpacked and without padding. Positions count from the start of each
    example.
    """

    examples: ExampleBatch
    ends: Buffer  # uint32: for each row, the number of examples in the batch up to its end

    def __len__(self) -> int:
        return len(self.ends)

    def rows(self) -> Iterator[list[Any]]:
        """Yield the list of examples of each row."""
        examples, start = self.examples.examples(), 0
        for end in map(int, self.ends):
            yield list(islice(examples, end - start))
            start = end


class PackWriter(Protocol):
    """Interface of a writer of packed rows. ``close`` completes the file but leaves the sink open.

    ShardError names a row that the layout cannot hold, with too many ids, examples or masks.
    """

    def write(self, packs: PackBatch) -> None: ...

    def close(self) -> None: ...


class PackReader(ShardReader):
    """Reader of a shard of packed rows. Used as a ShardReader it returns their examples, row after row.

    ``len`` is the number of examples, ``rows`` the number of packed rows. ShardError names the file and the
    row that cannot be read.
    """

    rows: int

    @abstractmethod
    def packs(self, size: int) -> Iterator[PackBatch]:
        """Yield all rows in order, in batches of at most ``size``."""

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        from bertdata.examples.columns import convert_to_arrays, regroup_batches

        return regroup_batches((convert_to_arrays(packs.examples) for packs in self.packs(size)), size)


class PackRegrouping:
    """Buffer that takes packed rows in batches of any size and returns batches of exactly ``size`` rows."""

    def __init__(self, size: int) -> None:
        assert size > 0, size
        self._size = size
        self._held: list[PackBatch] = []
        self._count = 0

    def add(self, packs: PackBatch) -> Iterator[PackBatch]:
        """Add rows. Yield the batches that are now complete.

        The remaining rows are copied, because the caller may reuse its buffers.
        """
        start = 0
        while self._count + len(packs) - start >= self._size:
            stop = start + self._size - self._count
            self._held.append(cut_packs(packs, start, stop))
            yield from self.rest()
            start = stop
        if start < len(packs):
            self._held.append(join_packs([cut_packs(packs, start, len(packs))]))
            self._count += len(packs) - start

    def rest(self) -> Iterator[PackBatch]:
        """Yield the last, incomplete batch, if there is one."""
        held, self._held, self._count = self._held, [], 0
        if held:
            yield join_packs(held)


def regroup_packs(batches: Iterable[PackBatch], size: int) -> Iterator[PackBatch]:
    """Yield the same rows in batches of ``size``."""
    regrouping = PackRegrouping(size)
    for packs in batches:
        yield from regrouping.add(packs)
    yield from regrouping.rest()


def pack_arrays(packs: PackBatch) -> PackBatch:
    """Return the rows with every column as a NumPy array, without copying."""
    import numpy as np

    from bertdata.examples.columns import convert_to_arrays

    return PackBatch(examples=convert_to_arrays(packs.examples), ends=np.asarray(packs.ends))


def cut_packs(packs: PackBatch, start: int, stop: int) -> PackBatch:
    """Return the rows from start to stop - 1 of a batch of arrays. The large columns are views."""
    from bertdata.examples.columns import slice_batch

    first = int(packs.ends[start - 1]) if start else 0
    last = int(packs.ends[stop - 1]) if stop else 0
    return PackBatch(examples=slice_batch(packs.examples, first, last), ends=packs.ends[start:stop] - first)


def join_packs(batches: list[PackBatch]) -> PackBatch:
    """Concatenate batches of packed rows. The columns are copied."""
    import numpy as np

    from bertdata.examples.columns import compute_lengths, join_batches

    counts = np.concatenate([compute_lengths(packs.ends) for packs in batches])
    examples = join_batches([packs.examples for packs in batches])
    return PackBatch(examples=examples, ends=np.cumsum(counts).astype(np.uint32))


def find_rows(ends: "Array") -> "Array":
    """Return the index of each example's row: rows that end at examples [2, 3] -> [0, 0, 1]."""
    import numpy as np

    from bertdata.examples.columns import compute_lengths

    return np.repeat(np.arange(len(ends)), compute_lengths(ends))


def count_grid_mask_slots(layout: ShardLayout) -> int:
    """Return how many masked positions a row of fixed width can hold.

    A row has room for max_predictions_per_seq masks. The number of masks of each sequence is rounded up,
    which may add sequences_per_row - 1 masks.
    """
    return layout.max_predictions_per_seq + layout.sequences_per_row - 1


def unpack_layout(layout: ShardLayout) -> ShardLayout:
    """Return the layout for the same examples with one example per row."""
    return replace(layout, packing=None, sequences_per_row=1)
