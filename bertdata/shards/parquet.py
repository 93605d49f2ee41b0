"""Parquet shards: one row an example, its lists without padding; the layout in the schema's metadata.

Every page carries a CRC-32, which the reader checks. Any Parquet tool reads the file, for instance
``datasets.load_dataset("parquet", data_files="*.parquet")``.
"""

import weakref
from collections.abc import Iterator
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any

from bertdata.errors import MissingExtraError, ShardError
from bertdata.records import ExampleBatch, ShardLayout
from bertdata.shards.protocol import Sink
from schemas import load_schema

if TYPE_CHECKING:
    from bertdata.shards.columns import Array, Place

GROUP_ROWS = 8192
GROUP_IDS = 4 * 1024 * 1024
ZSTD_LEVEL = 3
_SIZES = ("max_seq_length", "max_predictions_per_seq")


class ParquetWriter:
    """Writes batches as row groups of a fixed size, so the bytes do not depend on how they were batched."""

    def __init__(self, sink: Sink, layout: ShardLayout) -> None:
        _load_pyarrow()
        from bertdata.shards import columns

        columns.check_writable(layout, "parquet")
        self._layout = layout
        self._received = 0
        self._blocks = columns.Regrouping(_group_rows(layout))
        self._schema = _declared_schema()
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
        from bertdata.shards import columns

        batch = columns.arrays(batch)
        place = columns.Place(name="parquet shard", first=self._received)
        columns.check(batch, self._layout, place)
        self._received += len(batch)
        for block in self._blocks.add(batch):
            self._write_group(block)

    def _write_group(self, block: ExampleBatch) -> None:
        table = _encode(block, self._schema)
        self._parquet.write_table(table, row_group_size=len(block))

    def close(self) -> None:
        for block in self._blocks.rest():
            self._write_group(block)
        sizes = {f"bertdata.{what}": str(getattr(self._layout, what)) for what in _SIZES}
        self._parquet.add_key_value_metadata(sizes)
        self._parquet.close()


class ParquetReader:
    """Reads a file of these columns, whatever their integer types and row groups, from a seekable file."""

    layout: ShardLayout

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._name = name
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
        _check_schema(schema, name)
        self.layout = _find_layout(schema.metadata or {}, name)

    def __len__(self) -> int:
        return sum(self._sizes)

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        from bertdata.shards import columns

        return columns.regroup(self._blocks(), size)

    def _blocks(self) -> Iterator[ExampleBatch]:
        from bertdata.shards import columns

        first = 0
        for group, rows in enumerate(self._sizes):
            for start, records in self._records(group, first):
                place = columns.Place(name=self._name, first=start)
                block = _decode(records, place)
                columns.check(block, self.layout, place)
                yield columns.narrow(block)
            first += rows

    def _records(self, group: int, first: int) -> Iterator[tuple[int, Any]]:
        """Arrow record batches of a row group, each with the number of its first record."""
        fields = list(_declared_fields())
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
        remedy = f"needs the package {error.name}: pip install 'bertdata[parquet]'"
        raise MissingExtraError(f"container parquet {remedy}") from error


def _pyarrow_errors() -> tuple[type[Exception], ...]:
    """What pyarrow raises for a file that makes no sense."""
    return _load_pyarrow().ArrowException, OSError, ValueError, TypeError, OverflowError, MemoryError


def _declared_fields() -> dict[str, Any]:
    fields: dict[str, Any] = load_schema("example")["parquet"]
    return fields


def _declared_schema() -> Any:
    pyarrow = _load_pyarrow()
    types = {name: pyarrow.type_for_alias(field["type"]) for name, field in _declared_fields().items()}
    for name, field in _declared_fields().items():
        if field["shape"] == "*":
            types[name] = pyarrow.list_(types[name])
    return pyarrow.schema(types)


def _group_rows(layout: ShardLayout) -> int:
    return max(1, min(GROUP_ROWS, GROUP_IDS // layout.max_seq_length))


def _encode(block: ExampleBatch, schema: Any) -> Any:
    """The Arrow table of a checked block."""
    from bertdata.shards.columns import lengths

    pyarrow = _load_pyarrow()
    values = {
        "input_ids": _lists(block.ids, block.ends, schema.field("input_ids").type),
        "first_segment_length": block.first_lengths,
        "second_segment_length": lengths(block.ends) - block.first_lengths,
        "masked_lm_positions": _lists(
            block.positions, block.mask_ends, schema.field("masked_lm_positions").type
        ),
        "masked_lm_ids": _lists(block.labels, block.mask_ends, schema.field("masked_lm_ids").type),
        "next_sentence_label": block.next_labels,
    }
    return pyarrow.table([pyarrow.array(values[field.name]).cast(field.type) for field in schema], schema)


def _lists(values: "Array", ends: "Array", kind: Any) -> Any:
    pyarrow = _load_pyarrow()
    offsets = pyarrow.array([0, *ends.tolist()], pyarrow.int32())
    return pyarrow.ListArray.from_arrays(offsets, pyarrow.array(values).cast(kind.value_type))


def _check_schema(schema: Any, name: str) -> None:
    """ShardError unless each declared column is there and holds integers, or lists of integers."""
    types = import_module("pyarrow.types")
    for field, declared in _declared_fields().items():
        if schema.get_field_index(field) < 0:
            raise ShardError(f"{name}: no column {field}, expected {', '.join(_declared_fields())}")
        found = schema.field(field).type
        item = found
        if declared["shape"] == "*":
            item = found.value_type if types.is_list(found) or types.is_large_list(found) else None
        if item is None or not types.is_integer(item):
            expected = f"lists of {declared['type']}" if declared["shape"] == "*" else declared["type"]
            raise ShardError(f"{name}: column {field} is {found}, expected {expected}")


def _find_layout(metadata: dict[bytes, bytes], name: str) -> ShardLayout:
    from bertdata.shards.columns import check_layout

    layout = ShardLayout(**{what: _find_size(metadata, what, name) for what in _SIZES})
    check_layout(layout, name)
    return layout


def _find_size(metadata: dict[bytes, bytes], what: str, name: str) -> Any:
    key = f"bertdata.{what}"
    text = metadata.get(key.encode(), b"").decode("ascii", "replace")
    if not (text.isascii() and text.isdigit()):
        raise ShardError(f"{name}: {key} is {text!r} in the metadata, expected a number")
    return int(text)


def _decode(records: Any, place: "Place") -> ExampleBatch:
    """The examples of an Arrow record batch, their columns in its item types and not yet checked.

    ShardError where a value is missing, or where lengths contradict one another.
    """
    from bertdata.shards.columns import lengths

    scalars = {
        name: _scalar_column(records, name, place)
        for name, field in _declared_fields().items()
        if field["shape"] == "1"
    }
    ids, ends = _list_column(records, "input_ids", place)
    positions, mask_ends = _list_column(records, "masked_lm_positions", place)
    labels, label_ends = _list_column(records, "masked_lm_ids", place)
    masks, named = lengths(mask_ends), lengths(label_ends)
    place.refuse(named != masks, lambda i: f"{named[i]} masked ids, expected {masks[i]}, one a position")
    length = lengths(ends)
    first, second = scalars["first_segment_length"], scalars["second_segment_length"]
    place.refuse(
        first.astype("int64") + second.astype("int64") != length,
        lambda i: f"segments of {first[i]} and {second[i]} ids, expected {length[i]} together",
    )
    return ExampleBatch(
        ids=ids,
        ends=ends,
        first_lengths=first,
        positions=positions,
        labels=labels,
        mask_ends=mask_ends,
        next_labels=scalars["next_sentence_label"],
    )


def _scalar_column(records: Any, name: str, place: "Place") -> "Array":
    column = records.column(name)
    place.refuse(column.is_null().to_numpy(zero_copy_only=False), lambda _: f"no {name}, expected a number")
    values: Array = column.to_numpy()
    return values


def _list_column(records: Any, name: str, place: "Place") -> "tuple[Array, Array]":
    """The values of a column of lists, and where each list ends in them."""
    column = records.column(name)
    place.refuse(column.is_null().to_numpy(zero_copy_only=False), lambda _: f"no {name}, expected a list")
    offsets = column.offsets.to_numpy()
    ends: Array = offsets[1:] - offsets[0]
    values = column.flatten()
    holes = values.is_null().to_numpy(zero_copy_only=False)
    place.refuse_items(holes, ends, lambda _: f"a hole in {name}, expected numbers only")
    return values.to_numpy(), ends


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
