"""Convert examples to padded NumPy rows and back. The container's field declarations say what a row holds.

This module imports NumPy.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertdata.config.settings import LONGEST_SEQUENCE
from bertdata.errors import SettingsError, ShardError
from bertdata.examples.columns import Array, compute_lengths
from bertdata.examples.fields import Field, Fields, find_places_column, map_columns_by_name
from bertdata.records import IDS, IDS_ENDS, Buffer, Column, ExampleBatch, ShardLayout

LARGEST_ID = 2**31 - 1  # HDF5 and Parquet shards store ids as int32


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordCheck:
    """Helper that raises ShardError for a faulty example and names the shard and the record.

    first: number of the batch's first record.
    """

    name: str
    first: int

    def refuse(self, wrong: Array, problem: Callable[[int], str]) -> None:
        """Raise ShardError for the first example marked in ``wrong``. problem(index): describes the fault."""
        if wrong.any():
            index = int(np.argmax(wrong))
            raise self.error(index, problem(index))

    def refuse_items(self, wrong: Array, ends: Array, problem: Callable[[int], str]) -> None:
        """Raise ShardError for the first item that ``wrong`` marks in a column of lists.

        ends: end of each example's items. problem(index): describes the fault of an item.
        """
        if wrong.any():
            item = int(np.argmax(wrong))
            raise self.error(int(np.searchsorted(ends, item, side="right")), problem(item))

    def refuse_cells(self, field: str, found: Array, expected: Array, rule: str) -> None:
        """Raise ShardError for the first row whose values ``found`` differ from ``expected``.

        field: name of the field. rule: what its values have to be, for the message.
        """
        wrong = found != expected
        if wrong.any():
            row, column = (int(place[0]) for place in np.nonzero(wrong))
            cell = f"{field}[{column}] is {found[row, column]}"
            raise self.error(row, f"{cell}, expected {int(expected[row, column])}: {rule}")

    def error(self, index: int, problem: str) -> ShardError:
        return ShardError(f"{self.name}: record {self.first + index}: {problem}")


def check_writable(layout: ShardLayout, container: str) -> None:
    """Raise SettingsError if the layout asks for an order of fields that the container cannot store."""
    if layout.remask:
        raise SettingsError(
            f"remask needs the container tfrecord: {container} holds examples in their usual order"
        )


def check_layout(layout: ShardLayout, name: str, sizes: Iterable[str]) -> None:
    """Raise ShardError if a size that a file states is impossible. sizes: names of the sizes to check."""
    for what in sizes:
        size = layout.size(what)
        if not 1 <= size <= LONGEST_SEQUENCE:
            raise ShardError(f"{name}: {what} is {size}, expected 1 to {LONGEST_SEQUENCE}")


def check_batch(
    batch: ExampleBatch, layout: ShardLayout, record: RecordCheck, lowest: Mapping[str, int] | None = None
) -> None:
    """Raise ShardError for the first example that breaks a rule of its columns or exceeds the layout's sizes.

    The columns may have any integer type, so that a reader can check values before narrowing their types.
    lowest: lowest allowed value by column name. A container whose rows end at the first padding value cannot
    store that value itself.
    """
    length, lowest = compute_lengths(batch.ends), lowest or {}
    for ends, items in batch.ragged().items():
        if ends == IDS_ENDS:
            _check_size(length, IDS.items, 1, layout.size(IDS.size), record)
        else:
            group, sizes = items[0].group, compute_lengths(getattr(batch, ends))
            _check_size(sizes, group.items, 0, layout.size(group.size), record)
        for item in items:
            values, least = getattr(batch, item.name), lowest.get(item.name, 0)
            if item.is_place:
                _check_places(values, length, getattr(batch, ends), item, least, record)
            else:
                _check_items(values, getattr(batch, ends), item, least, record)
    for item in batch.columns():
        if item.ends is None and item.name not in batch.ragged():
            _check_single(getattr(batch, item.name), length, item, record)


def _check_size(sizes: Array, what: str, lowest: int, highest: int, record: RecordCheck) -> None:
    record.refuse(
        (sizes < lowest) | (sizes > highest), lambda i: f"{sizes[i]} {what}, expected {lowest} to {highest}"
    )


def _check_items(items: Array, ends: Array, column: Column, lowest: int, record: RecordCheck) -> None:
    most = min(column.most, LARGEST_ID)
    if items.dtype.kind == "u" and lowest <= 0 and np.iinfo(items.dtype).max <= most:
        return  # every value of this integer type is allowed
    record.refuse_items(
        (items < lowest) | (items > most),
        ends,
        lambda item: f"{column.noun} {items[item]}, expected {lowest} to {most}",
    )


def _check_single(values: Array, length: Array, column: Column, record: RecordCheck) -> None:
    found = values.astype(np.int64)
    most = length if column.is_place else np.full(len(found), column.most)
    record.refuse(
        (found < 0) | (found > most),
        lambda i: f"{column.one.replace('_', ' ')} {found[i]}, expected 0 to {most[i]}",
    )


def _check_places(
    values: Array, length: Array, ends: Array, column: Column, lowest: int, record: RecordCheck
) -> None:
    """Raise ShardError unless the positions of each example ascend and lie within the example."""
    positions, counts, noun = values.astype(np.int64), compute_lengths(ends), column.noun
    ends = np.cumsum(counts)
    limits = np.repeat(length, counts)
    record.refuse_items(
        (positions < lowest) | (positions >= limits),
        ends,
        lambda item: f"{noun} {positions[item]}, expected {lowest} to {limits[item] - 1}",
    )
    falls = np.diff(positions, prepend=-1) <= 0
    falls[(ends - counts)[counts > 0]] = False  # an example's first position cannot break the order
    record.refuse_items(
        falls,
        ends,
        lambda item: f"{noun} {positions[item]} after {positions[item - 1]}, expected ascending positions",
    )


def pad_examples(batch: ExampleBatch, layout: ShardLayout, fields: Fields) -> dict[str, Array]:
    """Return the padded rows of a checked batch by field, of shape [N, S], [N, P] or [N]."""
    columns = map_columns_by_name(type(batch))
    return {
        name: _pad_field(batch, field, columns[field.of], layout, np.dtype(field.type))
        for name, field in fields.items()
    }


def _pad_field(
    batch: ExampleBatch, field: Field, column: Column, layout: ShardLayout, kind: np.dtype[Any]
) -> Array:
    """Return a field's padded rows. The field's ``source`` says how they are derived from the column."""
    values: Array = getattr(batch, column.name)
    if field.shape == "1":
        return (compute_lengths(batch.ends) - values if field.source == "rest" else values).astype(kind)
    width = field.width(layout, 0)
    if field.source == "placed":
        return _pad_placed(batch, field, column, width, kind)
    if field.source == "after":
        used = make_leading_mask(compute_lengths(batch.ends), width)
        return (used & ~make_leading_mask(values, width)).astype(kind)
    assert column.ends is not None
    used = make_leading_mask(compute_lengths(getattr(batch, column.ends)), width)
    rows = np.full(used.shape, field.padding, dtype=kind)
    rows[used] = 1 if field.source == "ones" else values
    return rows


def _pad_placed(batch: ExampleBatch, field: Field, column: Column, width: int, kind: np.dtype[Any]) -> Array:
    """Return rows filled with the padding value, with each item at its masked position."""
    places = find_places_column(column.name, type(batch))
    assert places is not None
    assert column.ends is not None
    examples = np.repeat(np.arange(len(batch)), compute_lengths(getattr(batch, column.ends)))
    rows = np.full((len(batch), width), field.padding, dtype=kind)
    rows[examples, getattr(batch, places)] = getattr(batch, column.name)
    return rows


def unpad_rows(
    rows: dict[str, Array], fields: Fields, batch_type: type[ExampleBatch], record: RecordCheck
) -> ExampleBatch:
    """Return the examples of padded rows, in the rows' integer types and not yet checked.

    ShardError if a row holds something that an example cannot represent: a gap in the input mask, segment ids
    that are not zeros then ones, or values other than the padding after the last item.
    """
    columns = map_columns_by_name(batch_type)
    # ids [5 6 7 0], input_mask [1 1 1 0], segments [0 1 1 0] become the ids 5 6 7 and the segment length
    # 1. A container has no place for lengths, so they are recovered from the mask or from the padding.
    used = _find_used_cells(rows, fields, columns, record)
    found: dict[str, Array] = {ends: np.cumsum(cells.sum(axis=1)) for ends, cells in used.items()}
    ids = used[IDS_ENDS]
    for name, field in fields.items():
        column, row = columns[field.of], rows[name]
        if field.source == "after":
            place = ids.sum(axis=1) - np.count_nonzero(row, axis=1)
            expected = ids & ~make_leading_mask(place, row.shape[1])
            record.refuse_cells(name, row, expected, f"{name} are zeros, then ones, then zeros as padding")
            found[column.name] = place
        elif field.source == "values" and column.ends is None:
            found[column.name] = row
        elif field.source == "values":
            cells = used[column.ends or ""]
            rest = np.where(cells, field.padding, row)
            expected = np.full_like(rest, field.padding)
            record.refuse_cells(name, rest, expected, "padding follows the last value")
            found[column.name] = row[cells]
    return batch_type(**found)


def _find_used_cells(
    rows: dict[str, Array], fields: Fields, columns: dict[str, Column], record: RecordCheck
) -> dict[str, Array]:
    """Return a boolean array [N, width] per column of ends: True for cells that hold items, not padding."""
    found: dict[str, Array] = {}
    for name, field in fields.items():
        ends = columns[field.of].ends
        if ends is not None and field.source == "ones":
            count = np.count_nonzero(rows[name], axis=1)
            found[ends] = make_leading_mask(count, rows[name].shape[1])
            record.refuse_cells(name, rows[name], found[ends], f"{name} is ones, then zeros")
        elif ends is not None and field.ends_at_padding:
            found[ends] = np.logical_and.accumulate(rows[name] != field.padding, axis=1)
    return found


def make_leading_mask(counts: Buffer, width: int) -> Array:
    """Return an array [len(counts), width] of booleans whose row i begins with ``counts[i]`` true values."""
    truth: Array = np.arange(width) < np.asarray(counts, dtype=np.int64)[:, np.newaxis]
    return truth
