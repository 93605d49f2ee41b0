"""Turn rows of Arrow tables into records, and find text columns in Arrow schemas.

The readers of Arrow and Parquet files both use this module.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from bertdata.errors import InputError, MissingExtraError, install_extra
from bertdata.sources.fields import TextFields, find_texts
from bertdata.sources.json_lines import make_record
from bertdata.sources.piece import Found
from bertdata.sources.records import BadRecord
from bertdata.sources.settings import RecordSettings

BATCH_BYTES = 1 << 25
"""Most bytes of text in the rows that are turned into records at once."""


def import_pyarrow(path: str) -> Any:
    """Import and return the optional package pyarrow.

    Raises MissingExtraError if it is not installed. The message names the file ``path`` that needs it.
    """
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError(f"{path}: needs the package pyarrow: {install_extra('parquet')}") from None
    return pyarrow


def find_text_columns(schema: Any) -> TextFields:
    """Return the names of the columns that hold text, including dictionary-encoded columns."""
    texts = [field.name for field in schema if _is_text(field.type)]
    paragraphs = [field.name for field in schema if _is_list_of_texts(field.type)]
    inner = [name for field in schema for name in _find_inner_texts(field)]
    return TextFields(texts, paragraphs, inner)


def _is_text(kind: Any) -> bool:
    """Return True for Arrow's types of strings."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_bytes(kind: Any) -> bool:
    """Return True for Arrow's types of bytes."""
    from pyarrow import types

    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def _is_list_of_texts(kind: Any) -> bool:
    """Return True for a list of strings or bytes. Bytes also count, since they may be UTF-8 text."""
    from pyarrow import types

    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return _is_bytes(kind) or (is_list and (_is_text(kind.value_type) or _is_bytes(kind.value_type)))


def _find_inner_texts(field: Any) -> Iterator[str]:
    """Yield the names of text fields inside a struct column, as ``a.b``."""
    from pyarrow import types

    if not types.is_struct(field.type):
        return
    for inner in field.type:
        if _is_text(inner.type) or _is_list_of_texts(inner.type):
            yield f"{field.name}.{inner.name}"
        yield from (f"{field.name}.{name}" for name in _find_inner_texts(inner))


def find_columns_with_texts(schema: Any) -> list[str]:
    """Return the columns that contain strings, also inside lists and structs.

    If there are none, return the columns that contain bytes.
    """
    found = [field.name for field in schema if _holds_type(field.type, _is_text)]
    return found or [field.name for field in schema if _holds_type(field.type, _is_bytes)]


def _holds_type(kind: Any, wanted: Callable[[Any], bool]) -> bool:
    """Return True if a type, or a type inside it (of list items or struct fields), is wanted."""
    inner = (kind.field(number).type for number in range(kind.num_fields))
    return wanted(kind) or any(_holds_type(one, wanted) for one in inner)


def read_batch_texts(batch: Any, names: Sequence[str]) -> Iterator[str]:
    """Yield every text in the named columns of a batch of rows, also inside lists and structs.

    Bytes that are not UTF-8 are skipped.
    """
    for name in names:
        column = batch.column(name)
        column.validate(full=True)
        for value in column:
            yield from find_texts(value.as_py())


def check_columns(schema: Any, settings: RecordSettings, path: str) -> None:
    """Raise InputError if a column that the settings name is missing or occurs twice."""
    for name in list_wanted_columns(settings):
        if not _has_column(schema, name):
            raise InputError(f"{path}: has no column {name!r}")
        if schema.names.count(name) > 1:
            raise InputError(f"{path}: has the column {name!r} twice; rename one of the two")


def _has_column(schema: Any, name: str) -> bool:
    """Return True if the schema has this column, or this field inside a struct column."""
    from pyarrow import types

    if name in schema.names:
        return True
    first, *others = name.split(".")
    if first not in schema.names:
        return False
    kind = schema.field(first).type
    for inner in others:
        if not types.is_struct(kind) or kind.get_field_index(inner) < 0:
            return False
        kind = kind.field(inner).type
    return True


def _get_column(batch: Any, name: str) -> Any:
    """Return the values of a column, or of a field inside a struct column.

    Where the struct itself is null, the value of its field is null too.

    name: name of the column, or ``a.b`` for field ``b`` of the struct column ``a``.
    """
    from pyarrow import compute

    if name in batch.schema.names:
        return batch.column(name)
    first, *others = name.split(".")
    return compute.struct_field(batch.column(first), others)


def list_wanted_columns(settings: RecordSettings) -> list[str]:
    """Return the columns that the settings name: text, id and language."""
    names = (settings.text_field, settings.id_field, settings.language_field)
    return [name for name in names if name is not None]


def split_batch(batch: Any, settings: RecordSettings) -> Iterator[Any]:
    """Split a batch of rows into slices whose texts take at most BATCH_BYTES. A slice has at least one row.

    A dictionary-encoded column stores a repeated text once. Each record gets a copy of it, so a small batch
    may expand to gigabytes.
    """
    # For example, the texts of three rows take [30, 10, 5] MB, and the limit is 32 MB. The slices are then
    # [row 0] and [row 1, row 2].
    columns = [
        _get_column(batch, name) for name in list_wanted_columns(settings) if _has_column(batch.schema, name)
    ]
    lengths = [_measure_texts(column).to_pylist() for column in columns]
    sizes = [sum(size or 0 for size in row) for row in zip(*lengths, strict=True)]
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


def _measure_texts(column: Any) -> Any:
    """Return an Arrow array with the size in bytes that each row's text or list of texts has in Python."""
    import pyarrow as pa
    from pyarrow import compute, types

    kind = column.type
    # For example, the dictionary ["long text", "b"] with the indices [0, 0, 1] gives the sizes [9, 9, 1].
    if types.is_dictionary(kind):
        _check_text_offsets(column)
        return compute.take(_measure_texts(column.dictionary), column.indices)
    if (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
    ):
        _check_text_offsets(column)
        return compute.binary_length(column)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return pa.array([_measure_cell(cell) for cell in column], pa.int64())
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        _check_text_offsets(column)
        items = iter(_measure_texts(column.flatten()).to_pylist())
        counts = compute.list_value_length(column).fill_null(0).to_pylist()
        return pa.array([sum(size or 0 for size in islice(items, count)) for count in counts], pa.int64())
    return pa.array([0] * len(column), pa.int64())


def read_batch_records(batch: Any, settings: RecordSettings) -> Found:
    """Turn a batch of rows into records, numbered from 1.

    All texts of the batch must fit into memory together. ``split_batch`` makes batches for which this holds.
    """
    columns = {
        name: _get_column(batch, name)
        for name in list_wanted_columns(settings)
        if _has_column(batch.schema, name)
    }
    for column in columns.values():
        _check_text_offsets(column)
    # If one text may be too long, or is not UTF-8, convert row by row, so that only that row is a bad record.
    if sum(column.nbytes for column in columns.values()) > settings.raw_bytes:
        return [_make_row_record(columns, row, settings) for row in range(batch.num_rows)]
    try:
        values = {name: column.to_pylist() for name, column in columns.items()}
    except UnicodeDecodeError:
        return [_make_row_record(columns, row, settings) for row in range(batch.num_rows)]
    names = list(values)
    rows = zip(*values.values(), strict=True) if names else iter([()] * batch.num_rows)
    return [make_record(n, dict(zip(names, row, strict=True)), settings) for n, row in enumerate(rows, 1)]


def _check_text_offsets(column: Any) -> None:
    """Raise ArrowInvalid if the offsets of a text point outside its buffer, which pyarrow itself does not
    check.

    Texts that are not UTF-8 raise nothing here. The caller finds them when it decodes row by row.
    """
    import pyarrow as pa

    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        # validate() also fails for text that is not UTF-8. So view the texts as bytes: then only wrong
        # offsets are a fault.
        as_bytes = {
            pa.string(): pa.binary(),
            pa.large_string(): pa.large_binary(),
            pa.string_view(): pa.binary_view(),
        }
        if column.type not in as_bytes:
            raise
        column.view(as_bytes[column.type]).validate(full=True)


def _make_row_record(columns: Mapping[str, Any], row: int, settings: RecordSettings) -> Any:
    """Turn a single row into a record, or into a bad record if a text is too long or not UTF-8."""
    cells = {name: column[row] for name, column in columns.items()}
    if any(_measure_cell(cell) > settings.raw_bytes for cell in cells.values()):
        return BadRecord(row + 1, "too_long", f"a text of more than {settings.raw_bytes} bytes")
    try:
        values = {name: cell.as_py() for name, cell in cells.items()}
    except UnicodeDecodeError as error:
        return BadRecord(row + 1, "malformed", f"byte 0x{error.object[error.start]:02x} is not UTF-8")
    return make_record(row + 1, values, settings)


def _measure_cell(cell: Any) -> int:
    """Return the number of bytes of a text or list of texts in a cell, without copying it.

    Returns 0 for other values.
    """
    if not cell.is_valid:
        return 0
    if hasattr(cell, "as_buffer"):
        return int(cell.as_buffer().size)
    return int(cell.values.nbytes) if hasattr(cell, "values") else 0
