"""Example batches as NumPy columns: cut and joined, padded to rows and back, and checked.

The only module of the containers that needs NumPy when it is imported; HDF5 and Parquet import it
once they know that NumPy is there.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bertdata.config.recipes import LONGEST_SEQUENCE
from bertdata.errors import SettingsError, ShardError
from bertdata.records import Buffer, ExampleBatch, ShardLayout

Array = npt.NDArray[Any]
LARGEST_ID = 2**31 - 1  # both containers hold int32

_ITEM_TYPES = {
    "ids": np.uint32,
    "ends": np.uint32,
    "first_lengths": np.uint32,
    "positions": np.uint16,
    "labels": np.uint32,
    "mask_ends": np.uint32,
    "next_labels": np.uint8,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a batch stands, for messages: the shard's name and the number of the batch's first record."""

    name: str
    first: int

    def refuse(self, wrong: Array, problem: Callable[[int], str]) -> None:
        """Raise ShardError for the first example that is ``wrong``; ``problem`` describes it by its index."""
        if wrong.any():
            index = int(np.argmax(wrong))
            raise self.error(index, problem(index))

    def refuse_items(self, wrong: Array, ends: Array, problem: Callable[[int], str]) -> None:
        """The same for items of a ragged column; ``problem`` takes the item's index."""
        if wrong.any():
            item = int(np.argmax(wrong))
            raise self.error(int(np.searchsorted(ends, item, side="right")), problem(item))

    def refuse_cells(self, field: str, found: Array, expected: Array, rule: str) -> None:
        """Raise ShardError for the first row of ``found`` that differs from ``expected``."""
        wrong = found != expected
        if wrong.any():
            row, column = (int(place[0]) for place in np.nonzero(wrong))
            cell = f"{field}[{column}] is {found[row, column]}"
            raise self.error(row, f"{cell}, expected {int(expected[row, column])}: {rule}")

    def error(self, index: int, problem: str) -> ShardError:
        return ShardError(f"{self.name}: record {self.first + index}: {problem}")


def arrays(batch: ExampleBatch) -> ExampleBatch:
    """The same batch with every column a NumPy array, not copied."""
    return ExampleBatch(**{item.name: np.asarray(getattr(batch, item.name)) for item in fields(batch)})


def narrow(batch: ExampleBatch) -> ExampleBatch:
    """A checked batch in the item types that ExampleBatch promises; ids are 32 bits wide throughout."""
    return ExampleBatch(
        **{name: getattr(batch, name).astype(kind, copy=False) for name, kind in _ITEM_TYPES.items()}
    )


def compact(batch: ExampleBatch) -> ExampleBatch:
    """The batch with ids in 16 bits if they allow it, else in 32."""
    wide = max((int(ids.max()) for ids in (batch.ids, batch.labels) if len(ids)), default=0) >> 16
    kind = np.uint32 if wide else np.uint16
    return replace(batch, ids=batch.ids.astype(kind), labels=batch.labels.astype(kind))


def lengths(ends: Buffer) -> Array:
    """Items of each example, from the end offsets."""
    return np.diff(np.asarray(ends, dtype=np.int64), prepend=0)


def cut(batch: ExampleBatch, start: int, stop: int) -> ExampleBatch:
    """Examples ``start`` to ``stop`` of a batch of arrays; the large columns are views."""
    ids, ends = _cut_ragged(batch.ends, start, stop)
    masks, mask_ends = _cut_ragged(batch.mask_ends, start, stop)
    return ExampleBatch(
        ids=batch.ids[ids],
        ends=ends,
        first_lengths=batch.first_lengths[start:stop],
        positions=batch.positions[masks],
        labels=batch.labels[masks],
        mask_ends=mask_ends,
        next_labels=batch.next_labels[start:stop],
    )


def _cut_ragged(ends: Array, start: int, stop: int) -> tuple[slice, Array]:
    """Where the items of examples ``start`` to ``stop`` lie, and their ends counted from there."""
    first = int(ends[start - 1]) if start else 0
    cut_ends = ends[start:stop].astype(np.int64) - first
    return slice(first, first + int(cut_ends[-1]) if stop > start else first), cut_ends


def join(batches: list[ExampleBatch]) -> ExampleBatch:
    """One batch of the examples of all, copied, in the widest item type of each column."""
    columns = {
        item.name: np.concatenate([getattr(batch, item.name) for batch in batches])
        for item in fields(ExampleBatch)
    }
    for name in ("ends", "mask_ends"):
        sizes = np.concatenate([lengths(getattr(batch, name)) for batch in batches])
        columns[name] = np.cumsum(sizes).astype(np.uint32)
    return ExampleBatch(**columns)


def blank(layout: ShardLayout) -> ExampleBatch:
    """One example of the layout's full size, of zeros."""
    ids, masks = layout.max_seq_length, layout.max_predictions_per_seq
    return ExampleBatch(
        ids=np.zeros(ids, np.uint16),
        ends=np.array([ids], np.uint32),
        first_lengths=np.array([ids], np.uint32),
        positions=np.zeros(masks, np.uint16),
        labels=np.zeros(masks, np.uint16),
        mask_ends=np.array([masks], np.uint32),
        next_labels=np.zeros(1, np.uint8),
    )


class Regrouping:
    """Batches of any size in, batches of exactly ``size`` examples out, and at last what is left.

    What comes out does not depend on how the examples were batched before.
    """

    def __init__(self, size: int) -> None:
        assert size > 0, size
        self._size = size
        self._held: list[ExampleBatch] = []
        self._count = 0

    def add(self, batch: ExampleBatch) -> Iterator[ExampleBatch]:
        """The batches that ``batch`` completes. The rest is copied: the caller may reuse its buffers."""
        start = 0
        while self._count + len(batch) - start >= self._size:
            stop = start + self._size - self._count
            self._held.append(cut(batch, start, stop))
            yield from self.rest()
            start = stop
        if start < len(batch):
            self._held.append(join([cut(batch, start, len(batch))]))
            self._count += len(batch) - start

    def rest(self) -> Iterator[ExampleBatch]:
        """The one batch that is held back, if there is one."""
        held, self._held, self._count = self._held, [], 0
        if held:
            yield join(held)


def regroup(batches: Iterable[ExampleBatch], size: int) -> Iterator[ExampleBatch]:
    """The same examples, ``size`` to a batch."""
    regrouping = Regrouping(size)
    for batch in batches:
        yield from regrouping.add(batch)
    yield from regrouping.rest()


def check_writable(layout: ShardLayout, container: str) -> None:
    """SettingsError if the container has no place for the layout's order."""
    if layout.remask:
        raise SettingsError(
            f"remask needs the container tfrecord: {container} holds examples in their usual order"
        )


def check_layout(layout: ShardLayout, name: str) -> None:
    """ShardError if a shard declares sizes that no example can have."""
    for what in ("max_seq_length", "max_predictions_per_seq"):
        size = getattr(layout, what)
        if not 1 <= size <= LONGEST_SEQUENCE:
            raise ShardError(f"{name}: {what} is {size}, expected 1 to {LONGEST_SEQUENCE}")


def check(batch: ExampleBatch, layout: ShardLayout, place: Place, lowest_position: int = 0) -> None:
    """ShardError naming the first example that breaks a rule of ExampleBatch or does not fit the layout.

    Columns may be of any integer type, so a reader checks before it narrows. ``lowest_position`` is 1
    where the container takes position 0 as the end of the masks.
    """
    length, masks = lengths(batch.ends), lengths(batch.mask_ends)
    _check_size(length, "ids", 1, layout.max_seq_length, place)
    _check_size(masks, "masked positions", 0, layout.max_predictions_per_seq, place)
    first = batch.first_lengths.astype(np.int64)
    place.refuse(
        (first < 0) | (first > length),
        lambda i: f"{first[i]} ids in the first segment, expected 0 to {length[i]}, the ids in all",
    )
    _check_ids(batch.ids, batch.ends, "id", place)
    _check_ids(batch.labels, batch.mask_ends, "label", place)
    _check_positions(batch.positions.astype(np.int64), length, masks, lowest_position, place)
    label = batch.next_labels
    place.refuse((label < 0) | (label > 1), lambda i: f"next sentence label {label[i]}, expected 0 or 1")


def _check_size(sizes: Array, what: str, lowest: int, highest: int, place: Place) -> None:
    place.refuse(
        (sizes < lowest) | (sizes > highest), lambda i: f"{sizes[i]} {what}, expected {lowest} to {highest}"
    )


def _check_ids(ids: Array, ends: Array, what: str, place: Place) -> None:
    place.refuse_items(
        (ids < 0) | (ids > LARGEST_ID), ends, lambda item: f"{what} {ids[item]}, expected 0 to {LARGEST_ID}"
    )


def _check_positions(positions: Array, length: Array, masks: Array, lowest: int, place: Place) -> None:
    ends = np.cumsum(masks)
    limits = np.repeat(length, masks)
    place.refuse_items(
        (positions < lowest) | (positions >= limits),
        ends,
        lambda item: f"masked position {positions[item]}, expected {lowest} to {limits[item] - 1}",
    )
    falls = np.diff(positions, prepend=-1) <= 0
    falls[(ends - masks)[masks > 0]] = False  # an example's first position follows none
    place.refuse_items(
        falls,
        ends,
        lambda item: (
            f"masked position {positions[item]} after {positions[item - 1]}, expected ascending positions"
        ),
    )


def pad(batch: ExampleBatch, layout: ShardLayout, declared: dict[str, Any]) -> dict[str, Array]:
    """The padded rows of a checked batch, [N, S], [N, P] or [N], by field.

    ``declared`` gives each field's item type and padding, as in ``schemas/example.json``.
    """
    real = _leading(lengths(batch.ends), layout.max_seq_length)
    masked = _leading(lengths(batch.mask_ends), layout.max_predictions_per_seq)
    second = ~_leading(batch.first_lengths, layout.max_seq_length)
    ones = {
        "input_ids": (real, batch.ids),
        "input_mask": (real, 1),
        "segment_ids": (real, second[real]),
        "masked_lm_positions": (masked, batch.positions),
        "masked_lm_ids": (masked, batch.labels),
    }
    rows = {field: _filled(*contents, declared[field]) for field, contents in ones.items()}
    label = "next_sentence_labels"
    return {**rows, label: batch.next_labels.astype(declared[label]["type"])}


def unpad(rows: dict[str, Array], declared: dict[str, Any], place: Place) -> ExampleBatch:
    """The examples of padded rows, their columns in the rows' item types and not yet checked.

    ShardError where a row holds more than an example can: a hole in the input mask, segment ids other
    than zeros then ones, padding other than the declared one.
    """
    positions, labels = rows["masked_lm_positions"], rows["masked_lm_ids"]
    length = np.count_nonzero(rows["input_mask"], axis=1)
    real = _leading(length, rows["input_mask"].shape[1])
    place.refuse_cells("input_mask", rows["input_mask"], real, "the input mask is ones, then zeros")
    _check_padding(rows, "input_ids", real, declared, place)
    first = length - np.count_nonzero(rows["segment_ids"], axis=1)
    second = real & ~_leading(first, real.shape[1])
    rule = "the segment ids are zeros, then ones, then zeros as padding"
    place.refuse_cells("segment_ids", rows["segment_ids"], second, rule)
    masked = np.logical_and.accumulate(positions != 0, axis=1)
    _check_padding(rows, "masked_lm_positions", masked, declared, place)
    _check_padding(rows, "masked_lm_ids", masked, declared, place)
    return ExampleBatch(
        ids=rows["input_ids"][real],
        ends=np.cumsum(length),
        first_lengths=first,
        positions=positions[masked],
        labels=labels[masked],
        mask_ends=np.cumsum(np.count_nonzero(masked, axis=1)),
        next_labels=rows["next_sentence_labels"],
    )


def _leading(counts: Buffer, width: int) -> Array:
    """Rows of ``width`` truth values, the first ``counts[i]`` true."""
    truth: Array = np.arange(width) < np.asarray(counts, dtype=np.int64)[:, np.newaxis]
    return truth


def _filled(where: Array, values: Any, declared: dict[str, Any]) -> Array:
    rows = np.full(where.shape, declared["padding"], dtype=declared["type"])
    rows[where] = values
    return rows


def _check_padding(
    rows: dict[str, Array], field: str, used: Array, declared: dict[str, Any], place: Place
) -> None:
    padding = declared[field]["padding"]
    rest = np.where(used, padding, rows[field])
    place.refuse_cells(field, rest, np.full_like(rest, padding), "padding follows the last value")
