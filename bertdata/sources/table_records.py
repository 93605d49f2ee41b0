"""Records of Arrow's columns, and the columns of texts in its schemas."""

from collections.abc import Sequence
from typing import Any

from bertdata.errors import InputError, MissingExtraError, install_extra
from bertdata.sources.json_lines import record_of
from bertdata.sources.piece import Found
from bertdata.sources.records import BadRecord
from bertdata.sources.settings import RecordSettings


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


def check_columns(found: Sequence[str], settings: RecordSettings, path: str) -> None:
    """Raise InputError for a wanted column that the file has twice: either may be meant."""
    for name in wanted_columns(settings):
        if found.count(name) > 1:
            raise InputError(f"{path}: has {found.count(name)} columns named {name!r}; rename all but one")


def batch_records(batch: Any, settings: RecordSettings) -> Found:
    """The records of a batch of rows, numbered from 1."""
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
