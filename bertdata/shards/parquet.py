"""Parquet shards: one row an example, its lists without padding; the layout in the schema's metadata.

Every page carries a CRC-32, which the reader checks. Any Parquet tool reads the file, for instance
``datasets.load_dataset("parquet", data_files="*.parquet")``.
"""

import weakref
from collections.abc import Iterator
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any

from bertdata.errors import MissingExtraError, ShardError, install_extra
from bertdata.examples.bert.objective import BERT
from bertdata.examples.fields import Field, Fields, columns_by_name
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import find_objective
from bertdata.records import Column, ExampleBatch, ShardLayout
from bertdata.shards.protocol import ShardReader, Sink

if TYPE_CHECKING:
    from bertdata.examples.columns import Array
    from bertdata.shards.rows import RecordCheck

GROUP_ROWS = 8192
GROUP_IDS = 4 * 1024 * 1024
ZSTD_LEVEL = 3
DEFAULT_OBJECTIVE = BERT.name
"""Files that name no objective are of this one."""


class ParquetWriter:
    """Writes batches as row groups of a fixed size, so the bytes do not depend on how they were batched."""

    def __init__(self, sink: Sink, layout: ShardLayout) -> None:
        _load_pyarrow()
        from bertdata.examples.columns import Regrouping
        from bertdata.shards.rows import check_writable

        check_writable(layout, "parquet")
        self._fields = find_objective(layout.objective).fields("parquet", layout)
        self._layout = layout
        self._received = 0
        self._blocks: Regrouping[ExampleBatch] = Regrouping(_group_rows(layout))
        self._schema = _declared_schema(self._fields)
        file = _SinkFile(sink)
        weakref.finalize(self, file.abandon)
        self._parquet = import_module("pyarrow.parquet").ParquetWriter(
            file,
            self._schema,
            compression="zstd",
            compression_level=ZSTD_LEVEL,
            use_dictionary=False,  # zstd alone finds the passages that the dupe factor repeats
            version="2.6",
            data_page_version="1.0",
            store_schema=False,
            write_page_checksum=True,
        )

    def write(self, batch: ExampleBatch) -> None:
        from bertdata.examples.columns import arrays
        from bertdata.shards.rows import RecordCheck, check_batch

        batch = arrays(batch)
        check_batch(batch, self._layout, RecordCheck(name="parquet shard", first=self._received))
        self._received += len(batch)
        for block in self._blocks.add(batch):
            self._write_group(block)

    def _write_group(self, block: ExampleBatch) -> None:
        table = _encode(block, self._fields, self._schema)
        self._parquet.write_table(table, row_group_size=len(block))

    def close(self) -> None:
        for block in self._blocks.rest():
            self._write_group(block)
        sizes = {f"bertdata.{what}": str(getattr(self._layout, what)) for what in _sizes(self._fields)}
        if self._layout.objective != DEFAULT_OBJECTIVE:
            sizes["bertdata.objective"] = self._layout.objective
        self._parquet.add_key_value_metadata(sizes)
        self._parquet.close()


class ParquetReader(ShardReader):
    """Reads a file of these columns, whatever their integer types and row groups, from a seekable file."""

    layout: ShardLayout

    def __init__(self, file: IO[bytes], name: str, objective: Objective = BERT) -> None:
        self._name = name
        self._batch_type, self._fields = objective.batch_type, objective.fields("parquet")
        self._errors = _pyarrow_errors()
        parquet = import_module("pyarrow.parquet")
        try:
            self._parquet = parquet.ParquetFile(file, page_checksum_verification=True)
            schema, metadata = self._parquet.schema_arrow, self._parquet.metadata
            self._sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
            rows = metadata.num_rows
        except self._errors as error:
            raise ShardError(f"{name}: not a readable Parquet file ({_one_line(error)})") from error
        if rows != sum(self._sizes):
            raise ShardError(f"{name}: {sum(self._sizes)} rows in the row groups, expected {rows}")
        _check_schema(schema, self._fields, name)
        self.layout = _find_layout(schema.metadata or {}, objective, name)

    def __len__(self) -> int:
        return sum(self._sizes)

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        from bertdata.examples.columns import regroup

        return regroup(self._blocks(), size)

    def _blocks(self) -> Iterator[ExampleBatch]:
        from bertdata.examples.columns import narrow
        from bertdata.shards.rows import RecordCheck, check_batch

        first = 0
        for group, rows in enumerate(self._sizes):
            for start, records in self._records(group, first):
                record = RecordCheck(name=self._name, first=start)
                block = _decode(records, self._fields, self._batch_type, record)
                check_batch(block, self.layout, record)
                yield narrow(block)
            first += rows

    def _records(self, group: int, first: int) -> Iterator[tuple[int, Any]]:
        """Arrow record batches of a row group, each with the number of its first record."""
        fields = list(self._fields)
        size, start, stop = _group_rows(self.layout), first, first + self._sizes[group]
        try:
            for records in self._parquet.iter_batches(size, [group], columns=fields, use_threads=False):
                yield start, records
                start += len(records)
        except self._errors as error:
            raise ShardError(
                f"{self._name}: record {start}: records {start} to {stop - 1} (row group {group}) cannot be "
                f"read, expected undamaged pages ({_one_line(error)})"
            ) from error
        if start != stop:
            raise ShardError(
                f"{self._name}: record {start}: row group {group} ends here, expected {stop - start} more"
            )


class _SinkFile:
    """A sink as the file that pyarrow wants: it counts what it passes on, and never closes the sink."""

    closed = False

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._position = 0
        self._abandoned = False

    def abandon(self) -> None:
        """Pass on no more: pyarrow's writer, dropped after an error, would still write its footer."""
        self._abandoned = True

    def write(self, data: Any) -> int:
        data = bytes(data)
        if not self._abandoned:
            self._sink.write(data)
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None: ...

    def close(self) -> None: ...


def _load_pyarrow() -> Any:
    try:
        import_module("numpy")
        return import_module("pyarrow")
    except ModuleNotFoundError as error:
        remedy = f"needs the package {error.name}: {install_extra('parquet')}"
        raise MissingExtraError(f"container parquet {remedy}") from error


def _pyarrow_errors() -> tuple[type[Exception], ...]:
    """Exceptions that pyarrow raises for a damaged file."""
    return _load_pyarrow().ArrowException, OSError, ValueError, TypeError, OverflowError, MemoryError


def _sizes(fields: Fields) -> tuple[str, ...]:
    """The sizes of a layout that the file's metadata hold."""
    has_masks = "positions" in {field.of for field in fields.values()}
    return ("max_seq_length", "max_predictions_per_seq")[: 1 + has_masks]


def _declared_schema(fields: Fields) -> Any:
    pyarrow = _load_pyarrow()
    types = {name: pyarrow.type_for_alias(field.type) for name, field in fields.items()}
    for name, field in fields.items():
        if field.shape == "*":
            types[name] = pyarrow.list_(types[name])
    return pyarrow.schema(types)


def _group_rows(layout: ShardLayout) -> int:
    return max(1, min(GROUP_ROWS, GROUP_IDS // layout.max_seq_length))


def _encode(block: ExampleBatch, fields: Fields, schema: Any) -> Any:
    """The Arrow table of a checked block."""
    pyarrow = _load_pyarrow()
    columns = columns_by_name(type(block))
    values = [_field_values(block, field, columns[field.of], schema) for field in fields.values()]
    return pyarrow.table(
        [pyarrow.array(column).cast(field.type) for column, field in zip(values, schema, strict=True)], schema
    )


def _field_values(block: ExampleBatch, field: Field, column: Column, schema: Any) -> Any:
    from bertdata.examples.columns import lengths

    values = getattr(block, column.name)
    if column.ends is not None:
        return _lists(values, getattr(block, column.ends), schema.field(field.name).type)
    return lengths(block.ends) - values if field.source == "rest" else values


def _lists(values: "Array", ends: "Array", kind: Any) -> Any:
    pyarrow = _load_pyarrow()
    offsets = pyarrow.array([0, *ends.tolist()], pyarrow.int32())
    return pyarrow.ListArray.from_arrays(offsets, pyarrow.array(values).cast(kind.value_type))


def _check_schema(schema: Any, fields: Fields, name: str) -> None:
    """ShardError unless each declared column is there and holds integers, or lists of integers."""
    types = import_module("pyarrow.types")
    for field, declared in fields.items():
        if schema.get_field_index(field) < 0:
            raise ShardError(f"{name}: no column {field}, expected {', '.join(fields)}")
        found = schema.field(field).type
        item = found
        if declared.shape == "*":
            item = found.value_type if types.is_list(found) or types.is_large_list(found) else None
        if item is None or not types.is_integer(item):
            expected = f"lists of {declared.type}" if declared.shape == "*" else declared.type
            raise ShardError(f"{name}: column {field} is {found}, expected {expected}")


def objective_name(file: IO[bytes]) -> str:
    """The objective that a Parquet file's metadata name; DEFAULT_OBJECTIVE where they name none."""
    _load_pyarrow()
    try:
        metadata = import_module("pyarrow.parquet").ParquetFile(file).schema_arrow.metadata or {}
    except _pyarrow_errors():
        return DEFAULT_OBJECTIVE  # the reader says what is wrong
    finally:
        file.seek(0)
    name: str = metadata.get(b"bertdata.objective", DEFAULT_OBJECTIVE.encode()).decode("utf-8", "replace")
    return name


def _find_layout(metadata: dict[bytes, bytes], objective: Objective, name: str) -> ShardLayout:
    from bertdata.shards.rows import check_layout

    sizes = _sizes(objective.fields("parquet"))
    layout = ShardLayout(
        objective=objective.name, **{what: _find_size(metadata, what, name) for what in sizes}
    )
    check_layout(layout, name, has_masks=len(sizes) > 1)
    return layout


def _find_size(metadata: dict[bytes, bytes], what: str, name: str) -> Any:
    key = f"bertdata.{what}"
    text = metadata.get(key.encode(), b"").decode("ascii", "replace")
    if not (text.isascii() and text.isdigit()):
        raise ShardError(f"{name}: {key} is {text!r} in the metadata, expected a number")
    return int(text)


def _decode(
    records: Any, fields: Fields, batch_type: type[ExampleBatch], record: "RecordCheck"
) -> ExampleBatch:
    """The examples of an Arrow record batch, their columns in its item types and not yet checked.

    ShardError where a value is missing, or where lengths contradict one another.
    """
    columns = columns_by_name(batch_type)
    single = [name for name, field in fields.items() if field.shape == "1"]
    singles = {name: _scalar_column(records, name, record) for name in single}
    found: dict[str, Any] = {}
    for name, field in fields.items():
        column = columns[field.of]
        if column.ends is not None:
            found[column.name], ends = _list_column(records, name, record)
            _check_equal_lists(found.setdefault(column.ends, ends), ends, record)
        elif field.source == "values":
            found[column.name] = singles[name]
    for name, field in fields.items():
        if field.source == "rest":
            _check_rest(singles[name], found[field.of], found["ends"], record)
    return batch_type(**found)


def _check_equal_lists(expected: "Array", found: "Array", record: "RecordCheck") -> None:
    from bertdata.examples.columns import lengths

    masks, named = lengths(expected), lengths(found)
    record.refuse(named != masks, lambda i: f"{named[i]} masked ids, expected {masks[i]}, one a position")


def _check_rest(rest: "Array", first: "Array", ends: "Array", record: "RecordCheck") -> None:
    from bertdata.examples.columns import lengths

    length = lengths(ends)
    record.refuse(
        first.astype("int64") + rest.astype("int64") != length,
        lambda i: f"segments of {first[i]} and {rest[i]} ids, expected {length[i]} together",
    )


def _scalar_column(records: Any, name: str, record: "RecordCheck") -> "Array":
    column = records.column(name)
    record.refuse(column.is_null().to_numpy(zero_copy_only=False), lambda _: f"no {name}, expected a number")
    values: Array = column.to_numpy()
    return values


def _list_column(records: Any, name: str, record: "RecordCheck") -> "tuple[Array, Array]":
    """The values of a column of lists, and where each list ends in them."""
    column = records.column(name)
    record.refuse(column.is_null().to_numpy(zero_copy_only=False), lambda _: f"no {name}, expected a list")
    offsets = column.offsets.to_numpy()
    ends: Array = offsets[1:] - offsets[0]
    values = column.flatten()
    holes = values.is_null().to_numpy(zero_copy_only=False)
    record.refuse_items(holes, ends, lambda _: f"a hole in {name}, expected numbers only")
    return values.to_numpy(), ends


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
