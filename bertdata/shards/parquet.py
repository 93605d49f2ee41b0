"""Write and read Parquet shards. Each row is an example, stored in lists without padding.

The schema's metadata stores the layout.

Every page has a CRC-32, which the reader verifies. Any Parquet program can read the files, for example
``datasets.load_dataset("parquet", data_files="*.parquet")``.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any

from bertdata.examples.fields import Field, Fields, map_columns_by_name
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import find_objective, find_objective_of_file
from bertdata.records import DEFAULT_OBJECTIVE, IDS_ENDS, Column, ExampleBatch, ShardLayout
from bertdata.shards.parquet_file import (
    ParquetInput,
    ParquetOutput,
    check_parquet_columns,
    choose_group_rows,
    find_objective_in_metadata,
    load_pyarrow,
    make_list_schema,
    make_lists,
    read_lists,
    read_size,
)
from bertdata.shards.protocol import ShardReader, Sink

if TYPE_CHECKING:
    from bertdata.examples.columns import Array
    from bertdata.shards.rows import RecordCheck


_PADDING = "bertdata.padding_id"
"""Key of the padding id in the metadata. It is stored for conversion to containers that need padding, if it
is not 0.
"""


class ParquetWriter:
    """Writer of examples to Parquet, in row groups with a fixed number of rows.

    The file's bytes do not depend on how the examples are divided among calls of ``write``.
    """

    def __init__(self, sink: Sink, layout: ShardLayout, name: str = "parquet shard") -> None:
        load_pyarrow()
        from bertdata.examples.columns import BatchRegrouper
        from bertdata.shards.rows import check_writable

        check_writable(layout, "parquet")
        objective = find_objective(layout.objective)
        self._fields, self._sizes = objective.fields("parquet", layout), objective.batch_type.sizes()
        self._layout, self._name = layout, name
        self._received = 0
        self._blocks: BatchRegrouper[ExampleBatch] = BatchRegrouper(choose_group_rows(layout))
        self._schema = make_list_schema(*_find_declared_columns(self._fields))
        self._parquet = ParquetOutput(sink, self._schema)

    def write(self, batch: ExampleBatch) -> None:
        from bertdata.examples.columns import convert_to_arrays
        from bertdata.shards.rows import RecordCheck, check_batch

        batch = convert_to_arrays(batch)
        check_batch(batch, self._layout, RecordCheck(name=self._name, first=self._received))
        self._received += len(batch)
        for block in self._blocks.add(batch):
            self._write_group(block)

    def _write_group(self, block: ExampleBatch) -> None:
        self._parquet.write(_encode_examples(block, self._fields, self._schema))

    def close(self) -> None:
        for block in self._blocks.rest():
            self._write_group(block)
        sizes = {f"bertdata.{what}": str(self._layout.size(what)) for what in self._sizes}
        if self._layout.objective != DEFAULT_OBJECTIVE:
            sizes["bertdata.objective"] = self._layout.objective
        if self._layout.padding_id:
            sizes[_PADDING] = str(self._layout.padding_id)
        self._parquet.close(sizes)


class ParquetReader(ShardReader):
    """Reader of Parquet files with the columns of an objective, with any integer types and sizes of row
    groups.

    The file must be seekable.
    """

    layout: ShardLayout

    def __init__(self, file: IO[bytes], name: str, objective: Objective | None = None) -> None:
        """Open the file and find the layout of its examples.

        objective: the examples' objective. None takes the objective that the file names.
        """
        self._name = name
        self._parquet = ParquetInput(file, name)
        objective = objective or find_objective_of_file(
            find_objective_in_metadata(self._parquet.metadata), name
        )
        self._batch_type, self._fields = objective.batch_type, objective.fields("parquet")
        check_parquet_columns(self._parquet.schema, *_find_declared_columns(self._fields), name)
        self.layout = _find_layout(self._parquet.metadata, objective, name)

    def __len__(self) -> int:
        return len(self._parquet)

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        from bertdata.examples.columns import regroup_batches

        found = self._parquet.read_batches(list(self._fields), min(size, self._rows))
        return regroup_batches(self._read_blocks(found), size)

    def find_piece_ends(self) -> Sequence[int] | None:
        """Return for each row group the number of examples up to its end.

        A row group is a piece that is read at once.

        Returns None if the file has a row group that is too large for memory, which other programs may write.
        """
        found = self._parquet.group_ends
        return found if all(b - a <= 2 * self._rows for a, b in pairwise([0, *found])) else None

    def read_piece(self, number: int) -> ExampleBatch:
        from bertdata.examples.columns import join_batches

        return join_batches(
            list(self._read_blocks(self._parquet.read_group(number, list(self._fields), self._rows)))
        )

    @property
    def _rows(self) -> int:
        return choose_group_rows(self.layout)

    def _read_blocks(self, found: Iterable[tuple[int, Any]]) -> Iterator[ExampleBatch]:
        """Yield batches of the examples in Arrow record batches.

        found: each record batch with the number of its first record.
        """
        from bertdata.examples.columns import convert_to_item_types
        from bertdata.shards.rows import RecordCheck, check_batch

        for start, records in found:
            record = RecordCheck(name=self._name, first=start)
            block = _decode_examples(records, self._fields, self._batch_type, record)
            check_batch(block, self.layout, record)
            yield convert_to_item_types(block)


def _find_declared_columns(fields: Fields) -> tuple[dict[str, str], set[str]]:
    """Return the item type of each column by name, and the names of the columns that hold lists."""
    types = {name: field.type for name, field in fields.items()}
    return types, {name for name, field in fields.items() if field.shape == "*"}


def _encode_examples(block: ExampleBatch, fields: Fields, schema: Any) -> Any:
    """Convert a block of checked examples to an Arrow table."""
    pyarrow = load_pyarrow()
    columns = map_columns_by_name(type(block))
    values = [_encode_field(block, field, columns[field.of], schema) for field in fields.values()]
    return pyarrow.table(
        [pyarrow.array(column).cast(field.type) for column, field in zip(values, schema, strict=True)], schema
    )


def _encode_field(block: ExampleBatch, field: Field, column: Column, schema: Any) -> Any:
    from bertdata.examples.columns import compute_lengths

    values = getattr(block, column.name)
    if column.ends is not None:
        return make_lists(values, getattr(block, column.ends), schema.field(field.name).type)
    return compute_lengths(block.ends) - values if field.source == "rest" else values


def _find_layout(metadata: dict[bytes, bytes], objective: Objective, name: str) -> ShardLayout:
    from bertdata.shards.rows import check_layout

    sizes = {what: read_size(metadata, what, name) for what in objective.batch_type.sizes()}
    padding_id = read_size(metadata, "padding_id", name) if _PADDING.encode() in metadata else 0
    layout = ShardLayout.of_sizes(sizes, objective=objective.name, padding_id=padding_id)
    check_layout(layout, name, sizes)
    return layout


def _decode_examples(
    records: Any, fields: Fields, batch_type: type[ExampleBatch], record: "RecordCheck"
) -> ExampleBatch:
    """Convert an Arrow record batch to examples, with its integer types. The values are not checked yet.

    Raises ShardError if a value is missing, or if the lengths of lists contradict each other.
    """
    columns = map_columns_by_name(batch_type)
    single = [name for name, field in fields.items() if field.shape == "1"]
    singles = {name: _read_scalar_column(records, name, record) for name in single}
    found: dict[str, Any] = {}
    firsts: dict[str, str] = {}
    for name, field in fields.items():
        column = columns[field.of]
        if column.ends is not None:
            found[column.name], ends = read_lists(records, name, record)
            first = firsts.setdefault(column.ends, name)
            _check_equal_lists(name, ends, first, found.setdefault(column.ends, ends), record)
        elif field.source == "values":
            found[column.name] = singles[name]
    for name, field in fields.items():
        if field.source == "rest":
            _check_rest(singles[name], found[field.of], found[IDS_ENDS], record)
    return batch_type(**found)


def _check_equal_lists(
    name: str, found: "Array", first: str, expected: "Array", record: "RecordCheck"
) -> None:
    from bertdata.examples.columns import compute_lengths

    ours, due = compute_lengths(found), compute_lengths(expected)
    record.refuse(ours != due, lambda i: f"{ours[i]} values of {name}, expected {due[i]} as {first} has")


def _check_rest(rest: "Array", first: "Array", ends: "Array", record: "RecordCheck") -> None:
    from bertdata.examples.columns import compute_lengths

    length = compute_lengths(ends)
    record.refuse(
        first.astype("int64") + rest.astype("int64") != length,
        lambda i: f"segments of {first[i]} and {rest[i]} ids, expected {length[i]} together",
    )


def _read_scalar_column(records: Any, name: str, record: "RecordCheck") -> "Array":
    column = records.column(name)
    record.refuse(column.is_null().to_numpy(zero_copy_only=False), lambda _: f"no {name}, expected a number")
    values: Array = column.to_numpy()
    return values
