"""Records of Arrow's columns, and the columns of texts in its schemas."""

from collections.abc import Iterator
from typing import Any

from bertdata.errors import MissingExtraError, install_extra
from bertdata.sources.json_lines import record_of
from bertdata.sources.piece import Found
from bertdata.sources.records import BadRecord
from bertdata.sources.settings import RecordSettings

BATCH_BYTES = 1 << 25
"""Bytes of the texts of a batch of rows that become records at once."""


def pyarrow_of(path: str) -> Any:
    """The package. MissingExtraError where it is not installed."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError(f"{path}: needs the package pyarrow: {install_extra('parquet')}") from None
    return pyarrow


def text_columns(schema: Any) -> list[str]:
    """The columns of texts, by name, dictionaries of texts among them."""
    from pyarrow import types

    def is_text(kind: Any) -> bool:
        if types.is_dictionary(kind):
            return is_text(kind.value_type)
        return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))

    return [field.name for field in schema if is_text(field.type)]


def wanted_columns(settings: RecordSettings) -> list[str]:
    """The columns that are read."""
    names = (settings.text_field, settings.id_field, settings.language_field)
    return [name for name in names if name is not None]


def fitting_batches(batch: Any, settings: RecordSettings) -> Iterator[Any]:
    """The batch in pieces of rows whose values take at most BATCH_BYTES in memory, or of one row.

    A dictionary holds a text once, however many rows have it: as records they would be as many texts.
    """
    columns = [batch.column(name) for name in wanted_columns(settings) if name in batch.schema.names]
    sizes = [sum(values) for values in zip(*map(_value_bytes, columns), strict=True)]
    if sum(sizes) <= BATCH_BYTES:
        yield batch
        return
    start = held = 0
    for row, size in enumerate(sizes):
        if row > start and held + size > BATCH_BYTES:
            yield batch.slice(start, row - start)
            start, held = row, 0
        held += size
    yield batch.slice(start)


def _value_bytes(column: Any) -> list[int]:
    """Bytes of each row's value as a text of its own. 0 for other values."""
    from pyarrow import compute, types

    if types.is_dictionary(column.type):
        _check_places(column)
        lengths = compute.take(_lengths(column.dictionary), column.indices)
    else:
        lengths = _lengths(column)
    return [size or 0 for size in lengths.to_pylist()]


def _lengths(column: Any) -> Any:
    """The length of each text in bytes, as an array of Arrow's."""
    import pyarrow as pa
    from pyarrow import compute, types

    if types.is_string(column.type) or types.is_large_string(column.type):
        _check_places(column)
        return compute.binary_length(column)
    if types.is_string_view(column.type):
        return pa.array([_text_bytes(cell) for cell in column], pa.int64())
    if types.is_dictionary(column.type):  # one within another
        return compute.take(_lengths(column.dictionary), column.indices)
    return pa.array([0] * len(column), pa.int64())


def batch_records(batch: Any, settings: RecordSettings) -> Found:
    """The records of a batch of rows, numbered from 1, where they fit into memory: see fitting_batches."""
    columns = {name: batch.column(name) for name in wanted_columns(settings) if name in batch.schema.names}
    for column in columns.values():
        _check_places(column)
    if sum(column.nbytes for column in columns.values()) > settings.raw_bytes:  # a long text among them
        return [_single(batch, row, settings) for row in range(batch.num_rows)]
    try:
        values = {name: column.to_pylist() for name, column in columns.items()}
    except UnicodeDecodeError:  # one text among them
        return [_single(batch, row, settings) for row in range(batch.num_rows)]
    names = list(values)
    rows = zip(*values.values(), strict=True) if names else iter([()] * batch.num_rows)
    return [record_of(n, dict(zip(names, row, strict=True)), settings) for n, row in enumerate(rows, 1)]


def _check_places(column: Any) -> None:
    """ArrowInvalid for texts that would lie outside of their buffer: the library itself does not look.

    Texts that are not UTF-8 are left to be found one by one.
    """
    import pyarrow as pa

    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        as_bytes = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
        if column.type not in as_bytes:
            raise
        column.view(as_bytes[column.type]).validate(full=True)


def _single(batch: Any, row: int, settings: RecordSettings) -> Any:
    cells = {name: batch.column(name)[row] for name in wanted_columns(settings) if name in batch.schema.names}
    if any(_text_bytes(cell) > settings.raw_bytes for cell in cells.values()):
        return BadRecord(row + 1, "too_long", f"a text of more than {settings.raw_bytes} bytes")
    try:
        values = {name: cell.as_py() for name, cell in cells.items()}
    except UnicodeDecodeError as error:
        return BadRecord(row + 1, "malformed", f"byte 0x{error.object[error.start]:02x} is not UTF-8")
    return record_of(row + 1, values, settings)


def _text_bytes(cell: Any) -> int:
    """Bytes of a text, which is not copied. 0 for other values."""
    return cell.as_buffer().size if cell.is_valid and hasattr(cell, "as_buffer") else 0
