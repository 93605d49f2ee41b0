"""Write and read Parquet files with checksums. All kinds of Parquet shards use this module."""

import weakref
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import accumulate
from typing import IO, TYPE_CHECKING, Any

from bertdata.errors import MissingExtraError, ShardError, install_extra
from bertdata.io.parquet_columns import ColumnChunk, find_excessive_page, read_column_chunks
from bertdata.records import DEFAULT_OBJECTIVE, ShardLayout
from bertdata.shards.protocol import Sink

if TYPE_CHECKING:
    from bertdata.examples.columns import Array
    from bertdata.shards.rows import RecordCheck

GROUP_ROWS = 8192
GROUP_IDS = 4 * 1024 * 1024
ZSTD_LEVEL = 3
_READ_BYTES = 1 << 15
"""Number of bytes of a column that are read at a time. Pages that are larger are read at once."""


class ParquetOutput:
    """Writer of a Parquet file. Each table that is written becomes one row group."""

    def __init__(self, sink: Sink, schema: Any, zstd_level: int = ZSTD_LEVEL) -> None:
        file = SinkFile(sink)
        weakref.finalize(self, file.abandon)
        self._parquet = import_module("pyarrow.parquet").ParquetWriter(
            file,
            schema,
            compression="zstd",
            compression_level=zstd_level,
            # zstd already compresses text that occurs several times because of dupe_factor
            use_dictionary=False,
            version="2.6",
            data_page_version="1.0",
            store_schema=False,
            write_page_checksum=True,
        )

    def write(self, table: Any) -> None:
        self._parquet.write_table(table, row_group_size=table.num_rows)

    def close(self, metadata: dict[str, str]) -> None:
        self._parquet.add_key_value_metadata(metadata)
        self._parquet.close()


class ParquetInput:
    """Reader of a seekable Parquet file. Raises ShardError, which names a record that cannot be read.

    schema: the Arrow schema.
    metadata: the file's metadata by key.
    group_ends: for each row group, the number of records up to its end.
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name
        # The fields that were read last, and for each row group their column chunks.
        self._columns: tuple[list[str], list[tuple[ColumnChunk, ...]]] | None = None
        self._errors = list_pyarrow_errors()
        parquet = import_module("pyarrow.parquet")
        try:
            # Without these two arguments, all pages of a row group are in memory while it is read, which is
            # several MB for each open file.
            self._parquet = parquet.ParquetFile(
                file, page_checksum_verification=True, pre_buffer=False, buffer_size=_READ_BYTES
            )
            self.schema, found = self._parquet.schema_arrow, self._parquet.metadata
            self._sizes = [found.row_group(group).num_rows for group in range(found.num_row_groups)]
            rows = found.num_rows
        except self._errors as error:
            raise ShardError(f"{name}: not a readable Parquet file ({_format_on_one_line(error)})") from error
        if rows != sum(self._sizes):
            raise ShardError(f"{name}: {sum(self._sizes)} rows in the row groups, expected {rows}")
        self.group_ends = list(accumulate(self._sizes))
        self.metadata: dict[bytes, bytes] = self.schema.metadata or {}

    def __len__(self) -> int:
        return sum(self._sizes)

    def read_batches(self, fields: list[str], size: int) -> Iterator[tuple[int, Any]]:
        """Yield Arrow record batches of at most ``size`` rows, each with the number of its first record in
        the file.

        fields: names of the columns to read.
        """
        for group in range(len(self._sizes)):
            yield from self.read_group(group, fields, size)

    def read_group(self, group: int, fields: list[str], size: int) -> Iterator[tuple[int, Any]]:
        """Yield the Arrow record batches of a row group, each with the number of its first record in the
        file.

        group: index of the row group.
        fields: names of the columns to read.
        size: most rows of a record batch.
        """
        first = self.group_ends[group] - self._sizes[group]
        start, stop = first, first + self._sizes[group]
        try:
            if excess := find_excessive_page(self._file, self._find_column_chunks(fields)[group]):
                raise OSError(excess)
            for records in self._parquet.iter_batches(size, [group], columns=fields, use_threads=False):
                yield start, records
                start += len(records)
        except self._errors as error:
            raise ShardError(
                f"{self._name}: record {start}: records {start} to {stop - 1} (row group {group}) cannot be "
                f"read, expected undamaged pages ({_format_on_one_line(error)})"
            ) from error
        # A damaged row group can end too early without an error from pyarrow.
        if start != stop:
            raise ShardError(
                f"{self._name}: record {start}: row group {group} ends here, expected {stop - start} more"
            )

    def _find_column_chunks(self, fields: list[str]) -> list[tuple[ColumnChunk, ...]]:
        """Return for each row group the column chunks of some fields. The footer is read once for all."""
        if self._columns is None or self._columns[0] != fields:
            self._columns = list(fields), read_column_chunks(self._file, fields)
        return self._columns[1]


class SinkFile:
    """Sink in the form of a file for pyarrow. It counts the bytes, and never closes the sink."""

    closed = False

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._position = 0
        self._abandoned = False

    def abandon(self) -> None:
        """Discard all data that is written from now on.

        This is needed after an error. A pyarrow writer that is then garbage-collected still writes a footer.
        """
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


def load_pyarrow() -> Any:
    try:
        import_module("numpy")
        return import_module("pyarrow")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"container parquet needs the package {error.name}: {install_extra('parquet')}"
        ) from error


def list_pyarrow_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that pyarrow raises for a damaged file."""
    return load_pyarrow().ArrowException, OSError, ValueError, TypeError, OverflowError, MemoryError


def choose_group_rows(layout: ShardLayout) -> int:
    """Return the number of rows in a row group. It is smaller for long examples, to limit the number of
    ids.
    """
    return max(1, min(GROUP_ROWS, GROUP_IDS // layout.max_seq_length))


def make_list_schema(types: Mapping[str, str], lists: set[str]) -> Any:
    """Return an Arrow schema for columns of integers or of lists of integers.

    types: item type of each column by name.
    lists: names of the columns that hold lists.
    """
    pyarrow = load_pyarrow()
    items = {name: pyarrow.type_for_alias(kind) for name, kind in types.items()}
    return pyarrow.schema(
        {name: pyarrow.list_(kind) if name in lists else kind for name, kind in items.items()}
    )


def make_lists(values: "Array", ends: "Array", kind: Any) -> Any:
    pyarrow = load_pyarrow()
    offsets = pyarrow.array([0, *ends.tolist()], pyarrow.int32())
    return pyarrow.ListArray.from_arrays(offsets, pyarrow.array(values).cast(kind.value_type))


def check_parquet_columns(schema: Any, types: Mapping[str, str], lists: set[str], name: str) -> None:
    """Raise ShardError unless the schema has each column, with integers or lists of integers.

    types: item type of each column by name.
    lists: names of the columns that hold lists.
    name: the file, for the error.
    """
    is_kind = import_module("pyarrow.types")
    for field, declared in types.items():
        if schema.get_field_index(field) < 0:
            raise ShardError(f"{name}: no column {field}, expected {', '.join(types)}")
        found = schema.field(field).type
        item = found
        if field in lists:
            item = found.value_type if is_kind.is_list(found) or is_kind.is_large_list(found) else None
        if item is None or not is_kind.is_integer(item):
            expected = f"lists of {declared}" if field in lists else declared
            raise ShardError(f"{name}: column {field} is {found}, expected {expected}")


def read_metadata(file: IO[bytes], what: str) -> str | None:
    """Return the value of the key ``bertdata.<what>`` in a Parquet file's metadata.

    Returns None if there is none.
    """
    load_pyarrow()
    try:
        metadata = import_module("pyarrow.parquet").ParquetFile(file).schema_arrow.metadata or {}
    except list_pyarrow_errors():
        return None  # If the file is damaged, opening it as a shard reports it later.
    finally:
        file.seek(0)
    found = metadata.get(f"bertdata.{what}".encode())
    return None if found is None else found.decode("utf-8", "replace")


def is_lddl_file(file: IO[bytes]) -> bool:
    """Return True if a Parquet file has the columns of LDDL's shards."""
    load_pyarrow()
    try:
        found = import_module("pyarrow.parquet").ParquetFile(file).schema_arrow.names
    except list_pyarrow_errors():
        return False  # If the file is damaged, opening it as a shard reports it later.
    finally:
        file.seek(0)
    return {"A", "B", "is_random_next", "num_tokens"} <= set(found)


def find_objective_in_metadata(metadata: dict[bytes, bytes]) -> str:
    """Return the objective's name that a file's metadata store.

    If they store none, it is the default objective.
    """
    return metadata.get(b"bertdata.objective", DEFAULT_OBJECTIVE.encode()).decode("utf-8", "replace")


def read_size(metadata: dict[bytes, bytes], what: str, name: str) -> Any:
    key = f"bertdata.{what}"
    text = metadata.get(key.encode(), b"").decode("ascii", "replace")
    if not (text.isascii() and text.isdigit()):
        raise ShardError(f"{name}: {key} is {text!r} in the metadata, expected a number")
    return int(text)


def read_lists(records: Any, name: str, record: "RecordCheck") -> "tuple[Array, Array]":
    """Return the values of all lists of a column, and for each list the index after its last value."""
    column = records.column(name)
    record.refuse(column.is_null().to_numpy(zero_copy_only=False), lambda _: f"no {name}, expected a list")
    offsets = column.offsets.to_numpy()
    ends: Array = offsets[1:] - offsets[0]
    values = column.flatten()
    holes = values.is_null().to_numpy(zero_copy_only=False)
    record.refuse_items(holes, ends, lambda _: f"a hole in {name}, expected numbers only")
    return values.to_numpy(), ends


def _format_on_one_line(error: Exception) -> str:
    return " ".join(str(error).split())
