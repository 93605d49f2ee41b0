"""Operations on example batches whose columns are NumPy arrays: slice, select, join, regroup and convert
types.

A column is one of a batch's arrays, such as its ids. Needs NumPy when it is imported.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.records import IDS, IDS_ENDS, Buffer, ExampleBatch, ShardLayout

Array = npt.NDArray[Any]
Batch = TypeVar("Batch", bound=ExampleBatch)

# The number of examples that are selected at a time. It limits the memory for the indices of their items.
_TAKEN = 4096
_ITEM_TYPES = {"id": np.uint32, "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32}


def convert_to_arrays(batch: Batch) -> Batch:
    """Return the batch with every column as a NumPy array that shares the column's memory."""
    return replace(batch, **{item.name: np.asarray(getattr(batch, item.name)) for item in batch.columns()})


def convert_to_item_types(batch: Batch) -> Batch:
    """Return the batch with each column in the integer type that the batch's class declares for it.

    Token ids get 32 bits. The caller must have checked that all values fit.
    """
    return replace(
        batch,
        **{
            item.name: getattr(batch, item.name).astype(_ITEM_TYPES[item.item], copy=False)
            for item in batch.columns()
        },
    )


def shrink_ids(batch: Batch) -> Batch:
    """Return the batch with its ids as 16-bit integers if all of them fit, else as 32-bit integers."""
    ids = {item.name: getattr(batch, item.name) for item in batch.columns() if item.item == "id"}
    wide = max((int(column.max()) for column in ids.values() if len(column)), default=0) >> 16
    kind = np.uint32 if wide else np.uint16
    return replace(batch, **{name: column.astype(kind) for name, column in ids.items()})


def compute_lengths(ends: Buffer) -> Array:
    """Return the number of items of each example.

    ends: for each example, the index after its last item, counted over the whole batch.
    """
    return np.diff(np.asarray(ends, dtype=np.int64), prepend=0)


def slice_batch(batch: Batch, start: int, stop: int) -> Batch:
    """Return the examples with the indices ``start`` to ``stop - 1`` of a batch of arrays.

    Columns with several items per example are views of the batch's memory.
    """
    groups = batch.ragged()
    found: dict[str, Any] = {}
    for name, items in groups.items():
        inside, found[name] = _slice_ends(getattr(batch, name), start, stop)
        found |= {item.name: getattr(batch, item.name)[inside] for item in items}
    single = [item.name for item in batch.columns() if item.name not in found]
    found |= {name: getattr(batch, name)[start:stop] for name in single}
    return replace(batch, **found)


def _slice_ends(ends: Array, start: int, stop: int) -> tuple[slice, Array]:
    """Find the items of the examples with the indices ``start`` to ``stop - 1``.

    Returns the slice of these items in their column, and the end of each example counted from the slice's
    start.
    """
    first = int(ends[start - 1]) if start else 0
    cut_ends = ends[start:stop].astype(np.int64) - first
    return slice(first, first + int(cut_ends[-1]) if stop > start else first), cut_ends


def take_examples(batch: Batch, order: Array, engine: Engine | None = None) -> Batch:
    """Copy the examples with the indices in ``order`` to a new batch, in this order."""
    if use_native(engine or default_engine()):
        return _take_native(batch, order.astype(np.int64, copy=False))
    pieces = [order[start : start + _TAKEN] for start in range(0, len(order), _TAKEN)] or [order]
    found = [_take_with_numpy(batch, piece) for piece in pieces]
    return join_batches(found) if len(found) > 1 else found[0]


def _take_native(batch: Batch, order: Array) -> Batch:
    """Copy the examples with the indices in ``order``, with the C++ kernel (_native/examples/take.h)."""
    found: dict[str, Any] = {}
    for name, items in batch.ragged().items():
        ends = getattr(batch, name).astype(np.uint32, copy=False)
        columns = [np.ascontiguousarray(getattr(batch, item.name)) for item in items]
        found_ends, taken = kernels.take_ragged(ends, columns, order)
        found[name] = np.asarray(found_ends)
        for item, column, data in zip(items, columns, taken, strict=True):
            found[item.name] = np.asarray(data).view(column.dtype)
    return replace(batch, **found, **_take_single_values(batch, order, found))


def _take_single_values(batch: Batch, order: Array, ragged: Iterable[str]) -> dict[str, Array]:
    """Return the selected values of the columns that have one value per example.

    ragged: names of the other columns, which have several items per example.
    """
    return {
        item.name: getattr(batch, item.name)[order] for item in batch.columns() if item.name not in ragged
    }


def _take_with_numpy(batch: Batch, order: Array) -> Batch:
    """Copy the examples with the indices in ``order``, with NumPy. It is the twin of the C++ kernel."""
    groups = batch.ragged()
    found: dict[str, Any] = {}
    for name, items in groups.items():
        ends = getattr(batch, name).astype(np.int64)
        sizes = compute_lengths(ends)[order]
        found[name] = np.cumsum(sizes).astype(np.uint32)
        # Compute where each item of the result comes from. For example, ends [2, 5] and order [1, 0] give new
        # ends [3, 5]. Items 0 to 2 of the result are items 2 to 4 of the batch, so 5 - 3 = 2 is added to
        # their index. Items 3 and 4 of the result are items 0 and 1, so 2 - 5 = -3 is added.
        places = np.repeat(ends[order] - found[name], sizes)
        places += np.arange(len(places))
        found |= {item.name: getattr(batch, item.name)[places] for item in items}
    return replace(batch, **found, **_take_single_values(batch, order, found))


def join_batches(batches: list[Batch]) -> Batch:
    """Copy the examples of several batches into one batch.

    If a column has different integer types in the batches, the result has the widest of them.
    """
    groups = batches[0].ragged()
    found: dict[str, Any] = {}
    for item in batches[0].columns():
        # In each batch, end offsets count from the batch's start. The offsets of the joined batch are the
        # running sums of all lengths.
        if item.name in groups:
            sizes = np.concatenate([compute_lengths(getattr(batch, item.name)) for batch in batches])
            found[item.name] = np.cumsum(sizes).astype(np.uint32)
        else:
            found[item.name] = np.concatenate([getattr(batch, item.name) for batch in batches])
    return replace(batches[0], **found)


def make_blank_example(batch_type: type[Batch], layout: ShardLayout) -> Batch:
    """Make an example of the layout's largest size, filled with zeros.

    A column with one position per example, such as the length of segment A, holds max_seq_length instead.
    """
    sizes = {
        ends: layout.size(IDS.size if ends == IDS_ENDS else items[0].group.size)
        for ends, items in batch_type.ragged().items()
    }
    found: dict[str, Any] = {}
    for item in batch_type.columns():
        if item.name in sizes:
            found[item.name] = np.array([sizes[item.name]], np.uint32)
        elif item.ends is not None:
            found[item.name] = np.zeros(sizes[item.ends], np.uint16)
        else:
            value = layout.max_seq_length if item.is_place else 0
            found[item.name] = np.array([value], _ITEM_TYPES[item.item])
    return batch_type(**found)


class BatchRegrouper(Generic[Batch]):
    """Turns batches of any size into batches of exactly ``size`` examples.

    Only the last batch may be smaller.

    The resulting batches do not depend on how the examples were divided into the batches that are added.
    """

    def __init__(self, size: int) -> None:
        assert size > 0, size
        self._size = size
        self._held: list[Batch] = []
        self._count = 0

    def add(self, batch: Batch) -> Iterator[Batch]:
        """Add a batch and yield every full batch that is now available.

        The examples that are left over are copied, because the caller may reuse the added batch's memory.
        """
        # For example, let size be 4, and 3 examples be stored when a batch of 6 arrives. The first of the 6
        # completes a batch of 4, the next 4 are another batch, and the last one is stored.
        start = 0
        while self._count + len(batch) - start >= self._size:
            stop = start + self._size - self._count
            self._held.append(slice_batch(batch, start, stop))
            yield self._join_held()
            start = stop
        if start < len(batch):
            self._held.append(join_batches([slice_batch(batch, start, len(batch))]))
            self._count += len(batch) - start

    def rest(self) -> Iterator[Batch]:
        """Yield a last, smaller batch if some examples are left that did not fill a batch."""
        if self._held:
            yield self._join_held()

    def _join_held(self) -> Batch:
        """Copy the stored examples into a batch, and forget them."""
        held, self._held, self._count = self._held, [], 0
        return join_batches(held)


def regroup_batches(batches: Iterable[Batch], size: int) -> Iterator[Batch]:
    """Yield the same examples in batches of ``size``. The last batch may be smaller.

    Between two of them, only copies of the examples that were not yielded yet stay in memory.
    """
    regrouping: BatchRegrouper[Batch] = BatchRegrouper(size)
    for batch in batches:
        full = deque(regrouping.add(batch))
        # A reader with hundreds of open files waits here in each of them. Let the batch's memory go before.
        del batch
        while full:
            yield full.popleft()
    yield from regrouping.rest()
