"""Convert examples to padded rows of NumPy arrays and back.

The field declarations of the container say what a row holds. This module imports NumPy.
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

LARGEST_ID = 2**31 - 1  # the largest id that HDF5 and Parquet shards can store, because they use int32


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordCheck:
    """Object that raises ShardError for faulty examples of a batch. The error names the shard and the record.

    name: the shard.
    first: number of the batch's first record.
    """

    name: str
    first: int

    def refuse(self, wrong: Array, problem: Callable[[int], str]) -> None:
        """Raise ShardError for the first example that ``wrong`` marks.

        problem: function that describes the fault of the example with an index.
        """
        if wrong.any():
            index = int(np.argmax(wrong))
            raise self.error(index, problem(index))

    def refuse_items(self, wrong: Array, ends: Array, problem: Callable[[int], str]) -> None:
        """Raise ShardError for the first item that ``wrong`` marks in a column of lists.

        ends: for each example, the index after its last item.
        problem: function that describes the fault of the item with an index.
        """
        if wrong.any():
            item = int(np.argmax(wrong))
            raise self.error(int(np.searchsorted(ends, item, side="right")), problem(item))

    def refuse_cells(self, field: str, found: Array, expected: Array, rule: str) -> None:
        """Raise ShardError for the first value of ``found`` that differs from ``expected``.

        field: name of the field.
        rule: what the values of the field have to be, for the message.
        """
        wrong = found != expected
        if wrong.any():
            row, column = (int(place[0]) for place in np.nonzero(wrong))
            cell = f"{field}[{column}] is {found[row, column]}"
            raise self.error(row, f"{cell}, expected {int(expected[row, column])}: {rule}")

    def error(self, index: int, problem: str) -> ShardError:
        return ShardError(f"{self.name}: record {self.first + index}: {problem}")


def check_writable(layout: ShardLayout, container: str) -> None:
    """Raise SettingsError if the layout asks for Graphcore's order, which only TFRecord can store.

    container: name of the container.
    """
    if layout.remask:
        raise SettingsError(
            f"remask needs the container tfrecord: {container} holds examples in their usual order"
        )


def check_layout(layout: ShardLayout, name: str, sizes: Iterable[str]) -> None:
    """Raise ShardError if a size of a file's layout is impossible.

    name: the file.
    sizes: names of the sizes to check.
    """
    for what in sizes:
        size = layout.size(what)
        if not 1 <= size <= LONGEST_SEQUENCE:
            raise ShardError(f"{name}: {what} is {size}, expected 1 to {LONGEST_SEQUENCE}")


def check_batch(
    batch: ExampleBatch, layout: ShardLayout, record: RecordCheck, lowest: Mapping[str, int] | None = None
) -> None:
    """Raise ShardError for the first example with a wrong value, or with more items than the layout allows.

    The columns may have any integer type, so that a reader can check values before it converts them to
    smaller types.

    lowest: lowest allowed value by column name. It is needed for containers whose rows end at the first
        padding value, which therefore cannot be stored itself.
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
        return  # This integer type can only hold allowed values.
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
    """Raise ShardError unless the positions of each example ascend and are within the example."""
    positions, counts, noun = values.astype(np.int64), compute_lengths(ends), column.noun
    ends = np.cumsum(counts)
    limits = np.repeat(length, counts)
    record.refuse_items(
        (positions < lowest) | (positions >= limits),
        ends,
        lambda item: f"{noun} {positions[item]}, expected {lowest} to {limits[item] - 1}",
    )
    falls = np.diff(positions, prepend=-1) <= 0
    falls[(ends - counts)[counts > 0]] = False  # the first position of an example has no other before it
    record.refuse_items(
        falls,
        ends,
        lambda item: f"{noun} {positions[item]} after {positions[item - 1]}, expected ascending positions",
    )


def pad_examples(batch: ExampleBatch, layout: ShardLayout, fields: Fields) -> dict[str, Array]:
    """Convert checked examples to padded rows.

    Returns by field an array with a row, or a single value, for each example.
    """
    columns = map_columns_by_name(type(batch))
    return {
        name: _pad_field(batch, field, columns[field.of], layout, np.dtype(field.type))
        for name, field in fields.items()
    }


def _pad_field(
    batch: ExampleBatch, field: Field, column: Column, layout: ShardLayout, kind: np.dtype[Any]
) -> Array:
    """Return the padded rows of a field. Its ``source`` says how they are made from the column.

    kind: item type of the rows.
    """
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
    """Return rows with the column's items at the masked positions and the padding value everywhere else."""
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
    """Convert padded rows to examples, with the integer types of the rows. The values are not checked yet.

    Raises ShardError if a row holds something that an example cannot represent: a gap in the input mask,
    segment numbers that are not zeros then ones, or anything but padding after the last item.

    rows: an array with all rows, by field name.
    """
    columns = map_columns_by_name(batch_type)
    # For example, ids [5 6 7 0], input_mask [1 1 1 0] and segments [0 1 1 0] become the ids 5 6 7 and the
    # segment length 1. A container does not store lengths, so they are found from the mask or from the
    # padding.
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
    """Return which cells of the rows hold items, not padding, as booleans of shape (rows, width).

    The result has such an array for each column of end offsets, by its name.
    """
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
    """Return booleans of shape (len(counts), width). Row i begins with ``counts[i]`` True values."""
    truth: Array = np.arange(width) < np.asarray(counts, dtype=np.int64)[:, np.newaxis]
    return truth
