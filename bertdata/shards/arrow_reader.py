"""Read files of Hugging Face's ``datasets``: Arrow IPC streams with one row per example.

Files that bertdata wrote store the objective and the sizes of examples in the schema's metadata. For other
files the caller names the objective, and the sizes are measured in the file. Columns that the objective does
not have are ignored. Padding, which is where ``attention_mask`` is 0, is dropped.

This module imports NumPy.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import IO, Any

import numpy as np

from bertdata.errors import ShardError
from bertdata.examples.columns import Array, compute_lengths, convert_to_item_types, regroup_batches
from bertdata.examples.fields import Field, Fields, find_places_column, map_columns_by_name
from bertdata.examples.groups import MASKS, find_mask_columns, has_group
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import find_objective_of_file
from bertdata.records import IDS, IDS_ENDS, Column, ExampleBatch, ShardLayout
from bertdata.shards.arrow_fields import OBJECTIVE, list_arrow_fields
from bertdata.shards.file_view import FileView
from bertdata.shards.parquet_file import list_pyarrow_errors, load_pyarrow, read_size
from bertdata.shards.protocol import ShardReader
from bertdata.shards.rows import RecordCheck, check_batch, check_layout

MASKED_SHARE = 0.15
"""Share of the longest example's ids for which the layout allows masks if a file's examples have none.

Masks may be drawn later, while the file is read. ``create`` uses the same share.
"""

_FILE_FORMAT = b"ARROW1"
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


class ArrowReader(ShardReader):
    """Reader of an Arrow stream that ``datasets`` or bertdata wrote, with any integer types."""

    layout: ShardLayout

    def __init__(self, file: IO[bytes], name: str, objective: Objective | None = None) -> None:
        """Open the stream, and find the sizes of its examples.

        objective: the examples' objective. None takes the objective that the file's metadata names.
        """
        self._name, self._errors = name, list_pyarrow_errors()
        self._file = file
        try:
            self.schema = _open_stream(file).schema
        except self._errors as error:
            raise self._make_damage_error(error) from error
        metadata = self.schema.metadata or {}
        if objective is None and OBJECTIVE.encode() not in metadata:
            raise ShardError(
                f"{name}: does not say of which objective its examples are; give it, mlm for blocks of ids "
                "that are masked at load"
            )
        known = objective or find_objective_of_file(
            metadata[OBJECTIVE.encode()].decode("utf-8", "replace"), name
        )
        self._kind, self._columns = known.batch_type, map_columns_by_name(known.batch_type)
        self._fields = self._check_fields(known)
        self.is_measured = f"bertdata.{IDS.size}".encode() not in metadata
        self._rows, largest = self._measure_sizes()
        self.layout = self._find_layout(known.name, metadata, largest)

    def __len__(self) -> int:
        return self._rows

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        return regroup_batches(self._read_blocks(), size)

    def _read_blocks(self) -> Iterator[ExampleBatch]:
        first = 0
        for records in self._read_record_batches():
            record = RecordCheck(name=self._name, first=first)
            block = self._decode_examples(records, record)
            check_batch(block, self.layout, record)
            first += len(block)
            decoded = [convert_to_item_types(block)]
            # A record batch may be large. While the caller has its examples, no variable refers to them here.
            del records, block
            yield decoded.pop()

    def _read_record_batches(self) -> Iterator[Any]:
        """Yield the stream's Arrow record batches. Empty ones are left out."""
        try:
            # No variable refers to a record batch, because the caller lets its memory go before the next one.
            yield from filter(_has_rows, _iterate_record_batches(_open_stream(self._file)))
        except self._errors as error:
            raise self._make_damage_error(error) from error

    def _make_damage_error(self, error: Exception) -> ShardError:
        return ShardError(f"{self._name}: not a readable Arrow stream ({' '.join(str(error).split())})")

    def _check_fields(self, objective: Objective) -> Fields:
        """Return the columns that can be read from the file.

        Raises ShardError if a column is missing or has a wrong type.
        """
        is_kind = import_module("pyarrow.types")
        found: dict[str, Field] = {}
        for name, field in list_arrow_fields(objective, has_masks=True).items():
            if self.schema.get_field_index(name) < 0:
                if field.source == "ones" or self._has_item_per_mask(field):
                    continue
                raise ShardError(f"{self._name}: no column {name}, which examples of {objective.name} have")
            kind = item = self.schema.field(name).type
            if field.shape == "*":
                is_list = (
                    is_kind.is_list(kind) or is_kind.is_large_list(kind) or is_kind.is_fixed_size_list(kind)
                )
                item = kind.value_type if is_list else None
            if item is None or not (is_kind.is_integer(item) or is_kind.is_boolean(item)):
                expected = f"lists of {field.type}" if field.shape == "*" else field.type
                raise ShardError(f"{self._name}: column {name} is {kind}, expected {expected}")
            found[name] = field
        return found

    def _has_item_per_mask(self, field: Field) -> bool:
        """Return True if a field has one item per masked position.

        Files without masks do not have such fields.
        """
        kind = self._kind
        return has_group(kind, MASKS) and self._columns[field.of].ends == find_mask_columns(kind).ends.name

    def _measure_sizes(self) -> tuple[int, dict[str, int]]:
        """Return the number of rows, and the largest sizes of the examples by name, such as the most ids.

        If the file stores the sizes itself, they are not measured, and 0 is returned for each.
        """
        rows, largest = 0, dict.fromkeys(self._kind.sizes(), 0)
        for records in self._read_record_batches():
            if self.is_measured:
                block = self._decode_examples(records, RecordCheck(name=self._name, first=rows))
                for ends, items in self._kind.ragged().items():
                    what = IDS.size if ends == IDS_ENDS else items[0].group.size
                    largest[what] = max(largest[what], int(compute_lengths(getattr(block, ends)).max()))
            rows += records.num_rows
        return rows, largest

    def _find_layout(
        self, objective: str, metadata: dict[bytes, bytes], largest: dict[str, int]
    ) -> ShardLayout:
        # The sizes come from the metadata if bertdata wrote the file, otherwise from the largest examples. A
        # file without masks gets room for them, because masks may be drawn while it is read.
        sizes: dict[str, int] = largest
        if not self.is_measured:
            sizes = {what: read_size(metadata, what, self._name) for what in self._kind.sizes()}
        elif MASKS.size in sizes and not sizes[MASKS.size]:
            sizes[MASKS.size] = round(MASKED_SHARE * sizes[IDS.size])
        sizes = {what: size or 1 for what, size in sizes.items()} if self.is_measured else sizes
        padding = read_size(metadata, "padding_id", self._name) if b"bertdata.padding_id" in metadata else 0
        layout = ShardLayout.of_sizes(sizes, objective=objective, padding_id=padding)
        check_layout(layout, self._name, sizes)
        return layout

    def _decode_examples(self, records: Any, record: RecordCheck) -> ExampleBatch:
        """Convert an Arrow record batch to an ExampleBatch, whose values are not checked yet.

        Raises ShardError if two lists of a row should have the same length but do not.
        """
        # First read the list columns, then find the padding, then convert each column without its padding.
        # Lists with an item per id become something smaller: labels become a column with an item per mask,
        # and token types become the length of segment A.
        lists = {
            name: _read_lists(records, name, record)
            for name, field in self._fields.items()
            if field.shape == "*"
        }
        used = self._find_padding(lists, record)
        found: dict[str, Any] = {}
        for name, field in self._fields.items():
            column = self._columns[field.of]
            if field.shape == "1":
                found[column.name] = _read_scalars(records, name, record)
            elif field.source == "values" and column.ends != IDS_ENDS:
                self._store_list(found, column, *lists[name], name, record)
            else:
                self._store_list_per_id(found, field, *_drop_padding(*lists[name], used), name, record)
        for column in self._columns.values():  # If the file has no masks, their columns are empty.
            if column.name not in found:
                is_ends = column.name in self._kind.ragged()
                found[column.name] = np.zeros(records.num_rows if is_ends else 0, np.uint32)
        return self._kind(**found)

    def _find_padding(self, lists: dict[str, tuple[Array, Array]], record: RecordCheck) -> Array | None:
        """Return for each id of the record batch True if it is a token, False if it is padding.

        The column attention_mask says so. Returns None if there is no padding, or no such column.

        lists: values and end offsets of each list column, by name.
        """
        ids = next(
            name for name, field in self._fields.items() if field.of == "ids" and field.source == "values"
        )
        ones = [name for name, field in self._fields.items() if field.source == "ones" and field.of == "ids"]
        for name in lists:
            if self._columns[self._fields[name].of].ends == IDS_ENDS or self._fields[name].source != "values":
                _check_equal(name, lists[name][1], ids, lists[ids][1], record)
        if not ones or bool(lists[ones[0]][0].all()):
            return None
        values, ends = lists[ones[0]]
        mask: Array = values != 0
        # Padding must come last in an example. So a 1 directly after a 0 in attention_mask is an error,
        # unless it is the first position of an example. The two examples 1 1 0 and 1 0, for instance, are
        # allowed, but the example 1 0 1 is not.
        falls = np.zeros(len(mask), bool)
        falls[1:] = mask[1:] & ~mask[:-1]
        falls[(ends - compute_lengths(ends))[compute_lengths(ends) > 0]] = False
        record.refuse_items(falls, ends, lambda _: f"{ones[0]} is not ones, then zeros")
        return mask

    def _store_list(
        self,
        found: dict[str, Any],
        column: Column,
        values: Array,
        ends: Array,
        name: str,
        record: RecordCheck,
    ) -> None:
        found[column.name] = values
        _check_equal(name, ends, f"{column.ends}", found.setdefault(str(column.ends), ends), record)

    def _store_list_per_id(
        self, found: dict[str, Any], field: Field, values: Array, ends: Array, name: str, record: RecordCheck
    ) -> None:
        """Convert a list with one item per id to a column of the batch, and store the column in ``found``.

        found: the columns of the batch by name.
        values: the items of all lists.
        ends: for each example, the index after the last item of its list.
        name: the field's name, for errors.
        """
        found[IDS_ENDS] = ends
        column = self._columns[field.of]
        if field.source == "values":
            found[column.name] = values
        # Such a list is zeros, then ones. The column holds the number of leading zeros: token types 0 0 0 1 1
        # become 3.
        elif field.source == "after":
            sizes = compute_lengths(ends)
            ones = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
            first = sizes - (ones[ends] - ones[ends - sizes])
            within = np.arange(len(values)) - np.repeat(ends - sizes, sizes)
            wrong = values != (within >= np.repeat(first, sizes))
            record.refuse_items(wrong, ends, lambda _: f"{name} is not zeros, then ones")
            found[column.name] = first
        # Such a list has a value per position, and -100 where nothing is masked. The columns hold only the
        # masked positions: labels -100 7 -100 become position 1 with the original id 7.
        elif field.source == "placed":
            self._store_masks(found, column, values, ends, values != field.padding)

    def _store_masks(
        self, found: dict[str, Any], column: Column, values: Array, ends: Array, masked: Array
    ) -> None:
        sizes = compute_lengths(ends)
        within = np.arange(len(values)) - np.repeat(ends - sizes, sizes)
        counts = np.concatenate([[0], np.cumsum(masked)])
        found[column.name] = values[masked]
        found[str(find_places_column(column.name, self._kind))] = within[masked]
        found.setdefault(str(column.ends), counts[ends])


def _open_stream(file: IO[bytes]) -> Any:
    """Open an Arrow stream, or a file in Arrow's file format.

    Raises ValueError for a stream without its end marker.
    """
    ipc, view = import_module("pyarrow.ipc"), FileView(file)
    is_file = view.read_at(0, len(_FILE_FORMAT)) == _FILE_FORMAT
    end = view.read_at(max(0, view.size - len(_END_OF_STREAM)), len(_END_OF_STREAM))
    if not is_file and end != _END_OF_STREAM:
        raise ValueError("the end of the stream is missing")
    view.seek(0)
    source = load_pyarrow().PythonFile(view, mode="r")
    return ipc.open_file(source) if is_file else ipc.open_stream(source)


def _iterate_record_batches(reader: Any) -> Iterator[Any]:
    if hasattr(reader, "num_record_batches"):
        yield from map(reader.get_batch, range(reader.num_record_batches))
    else:
        yield from reader


def _has_rows(records: Any) -> bool:
    """Return True if an Arrow record batch is not empty. Raises an error of pyarrow's if it is damaged."""
    records.validate(full=True)
    return bool(records.num_rows)


def _drop_padding(values: Array, ends: Array, used: Array | None) -> tuple[Array, Array]:
    """Remove padding from lists. Return the remaining values and the new end of each list.

    values: the items of all lists.
    ends: for each list, the index after its last item.
    used: for each item False if it is padding. None if there is no padding.
    """
    if used is None:
        return values, ends
    return values[used], np.concatenate([[0], np.cumsum(used)])[ends]


def _check_equal(name: str, ends: Array, of: str, expected: Array, record: RecordCheck) -> None:
    ours, due = compute_lengths(ends), compute_lengths(expected)
    record.refuse(ours != due, lambda i: f"{ours[i]} values of {name}, expected {due[i]} as {of} has")


def _read_lists(records: Any, name: str, record: RecordCheck) -> tuple[Array, Array]:
    """Return the values of all lists of a column, and for each list the index after its last value."""
    column = records.column(name)
    record.refuse(column.is_null().to_numpy(zero_copy_only=False), lambda _: f"no {name}, expected a list")
    pyarrow = load_pyarrow()
    if pyarrow.types.is_fixed_size_list(column.type):
        ends = np.arange(1, len(column) + 1, dtype=np.int64) * column.type.list_size
    else:
        offsets = column.offsets.to_numpy().astype(np.int64)
        ends = offsets[1:] - offsets[0]
    values = column.flatten()
    if values.null_count:
        holes = values.is_null().to_numpy(zero_copy_only=False)
        record.refuse_items(holes, ends, lambda _: f"a hole in {name}, expected numbers only")
    return values.to_numpy(zero_copy_only=False), ends


def _read_scalars(records: Any, name: str, record: RecordCheck) -> Array:
    column = records.column(name)
    record.refuse(column.is_null().to_numpy(zero_copy_only=False), lambda _: f"no {name}, expected a number")
    values: Array = column.to_numpy(zero_copy_only=False)
    return values
