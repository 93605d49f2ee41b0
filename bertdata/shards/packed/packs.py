"""Batches of packed rows, and the interfaces of the classes that write and read packed rows."""

from abc import abstractmethod
from collections import deque
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
    """A batch of packed rows. Row i has the examples ``ends[i-1]`` to ``ends[i] - 1``, from left to right.

    examples: the examples of all rows, without padding. Positions count from the start of each example.
    ends: for each row, the number of examples in the batch up to its end.
    """

    examples: ExampleBatch
    ends: Buffer  # uint32

    def __len__(self) -> int:
        return len(self.ends)

    def rows(self) -> Iterator[list[Any]]:
        """Yield for each row the list of its examples."""
        examples, start = self.examples.examples(), 0
        for end in map(int, self.ends):
            yield list(islice(examples, end - start))
            start = end


class PackWriter(Protocol):
    """Interface of a writer of packed rows. ``close`` completes the file but does not close the sink.

    Raises ShardError, which names a row that the layout cannot hold, because it has too many ids, examples or
    masks.
    """

    def write(self, packs: PackBatch) -> None: ...

    def close(self) -> None: ...


class PackReader(ShardReader):
    """Reader of a shard of packed rows.

    As a ShardReader it returns the single examples, row after row. ``len`` is the number of examples,
    ``rows`` the number of packed rows. Raises ShardError, which names the file and the row that cannot be
    read.
    """

    rows: int

    @abstractmethod
    def packs(self, size: int) -> Iterator[PackBatch]:
        """Yield all packed rows in order, in batches of at most ``size`` rows."""

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        from bertdata.examples.columns import convert_to_arrays, regroup_batches

        return regroup_batches((convert_to_arrays(packs.examples) for packs in self.packs(size)), size)


class PackRegrouper:
    """Turns batches of packed rows of any size into batches of exactly ``size`` rows.

    Only the last may be smaller.
    """

    def __init__(self, size: int) -> None:
        assert size > 0, size
        self._size = size
        self._held: list[PackBatch] = []
        self._count = 0

    def add(self, packs: PackBatch) -> Iterator[PackBatch]:
        """Add a batch and yield every full batch that is now available.

        The rows that are left over are copied, because the caller may reuse the added batch's memory.
        """
        start = 0
        while self._count + len(packs) - start >= self._size:
            stop = start + self._size - self._count
            self._held.append(slice_packs(packs, start, stop))
            yield self._join_held()
            start = stop
        if start < len(packs):
            self._held.append(join_packs([slice_packs(packs, start, len(packs))]))
            self._count += len(packs) - start

    def rest(self) -> Iterator[PackBatch]:
        """Yield a last, smaller batch if some rows are left that did not fill a batch."""
        if self._held:
            yield self._join_held()

    def _join_held(self) -> PackBatch:
        """Copy the stored rows into a batch, and forget them."""
        held, self._held, self._count = self._held, [], 0
        return join_packs(held)


def regroup_packs(batches: Iterable[PackBatch], size: int) -> Iterator[PackBatch]:
    """Yield the same packed rows in batches of ``size`` rows. The last batch may be smaller.

    Between two of them, only copies of the rows that were not yielded yet stay in memory.
    """
    regrouping = PackRegrouper(size)
    for packs in batches:
        full = deque(regrouping.add(packs))
        # As in ``regroup_batches``: let the batch's memory go before a caller waits with the next rows.
        del packs
        while full:
            yield full.popleft()
    yield from regrouping.rest()


def convert_packs_to_arrays(packs: PackBatch) -> PackBatch:
    """Return the packed rows with every column as a NumPy array, which shares the column's memory."""
    import numpy as np

    from bertdata.examples.columns import convert_to_arrays

    return PackBatch(examples=convert_to_arrays(packs.examples), ends=np.asarray(packs.ends))


def slice_packs(packs: PackBatch, start: int, stop: int) -> PackBatch:
    """Return the rows ``start`` to ``stop - 1`` of a batch of arrays.

    The large columns are views of its memory.
    """
    from bertdata.examples.columns import slice_batch

    first = int(packs.ends[start - 1]) if start else 0
    last = int(packs.ends[stop - 1]) if stop else 0
    return PackBatch(examples=slice_batch(packs.examples, first, last), ends=packs.ends[start:stop] - first)


def join_packs(batches: list[PackBatch]) -> PackBatch:
    """Copy several batches of packed rows into one."""
    import numpy as np

    from bertdata.examples.columns import compute_lengths, join_batches

    counts = np.concatenate([compute_lengths(packs.ends) for packs in batches])
    examples = join_batches([packs.examples for packs in batches])
    return PackBatch(examples=examples, ends=np.cumsum(counts).astype(np.uint32))


def find_rows(ends: "Array") -> "Array":
    """Return for each example the index of its row. For example, the ends [2, 3] give [0, 0, 1].

    ends: for each row, the number of examples up to its end.
    """
    import numpy as np

    from bertdata.examples.columns import compute_lengths

    return np.repeat(np.arange(len(ends)), compute_lengths(ends))


def count_grid_mask_slots(layout: ShardLayout) -> int:
    """Return the most masked positions that a row of fixed width can hold.

    It has room for max_predictions_per_seq masks, and for sequences_per_row - 1 more, because the number of
    masks is rounded up for each example.
    """
    return layout.max_predictions_per_seq + layout.sequences_per_row - 1


def unpack_layout(layout: ShardLayout) -> ShardLayout:
    """Return the layout in which the same examples are stored one per row."""
    return replace(layout, packing=None, sequences_per_row=1)
