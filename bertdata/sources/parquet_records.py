"""Read records from Parquet files.

A Parquet file consists of row groups, that is, blocks of rows. A small row group is read as a whole by any
worker. A large row group is read by the main process in batches, so that memory stays bounded. A compressed
file is unpacked into a temporary file first, because Parquet's footer is at its end.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.parquet_columns import (
    BYTE_ARRAY,
    DELTA_BYTE_ARRAY,
    ColumnChunk,
    find_excessive_page,
    parse_page_header,
    read_column_chunks,
)
from bertdata.sources.fields import TextFields
from bertdata.sources.piece import PIECE_BYTES, ReadPiece, RowsPiece, number_records
from bertdata.sources.settings import RecordSettings
from bertdata.sources.table_records import (
    check_columns,
    find_columns_with_texts,
    find_text_columns,
    import_pyarrow,
    list_wanted_columns,
    read_batch_records,
    read_batch_texts,
    split_batch,
)
from bertdata.sources.unpacking import BLOCK_BYTES, detect_packing, open_seekable

_LARGE_GROUP_BYTES = 1 << 25
"""Uncompressed size of the columns in a row group, in bytes, above which the group counts as large."""
_SHARED_BYTES = 1 << 21
"""Size in bytes of a text shared by many rows, above which its row group counts as large.

Parquet can store a text once for many rows. pyarrow copies such a text for every row, so a long shared text
may need much memory. Most files are not affected, since writers usually keep the dictionaries that hold
shared texts below 1 MiB.
"""
_MOST_GROUP_CHARACTERS = 1 << 29
_PAGE_HEAD_BYTES = 256
_BATCH_ROWS = 256


@dataclass(frozen=True, slots=True)
class RowGroupPiece:
    """Piece of a Parquet file: the rows of one row group.

    columns: column chunks of the columns that are read.
    """

    path: str
    group: int
    bytes: int
    columns: tuple[ColumnChunk, ...]

    def read(self, settings: RecordSettings) -> ReadPiece:
        found, held = [], 0
        with _open(self.path) as opened:
            for batch in _read_batches(opened, self.group, self.columns, settings):
                found += batch
                held += sum(len(getattr(record, "text", "")) for record in batch)
                if held > _MOST_GROUP_CHARACTERS:
                    raise InputError(
                        f"{self.path}: row group {self.group}: its texts have more than "
                        f"{_MOST_GROUP_CHARACTERS} characters, many of which the file holds once; write it "
                        "with fewer rows in a row group"
                    )
        found = number_records(found)
        return ReadPiece(found, len(found))


def find_parquet_columns(path: str, settings: RecordSettings) -> TextFields:
    """Return the names of the columns of a Parquet file that hold text."""
    with _open(path) as opened:
        return find_text_columns(opened.table.schema_arrow)


def split_parquet(path: str, settings: RecordSettings) -> Iterator[RowGroupPiece | RowsPiece]:
    """Divide a Parquet file into pieces, that is, groups of consecutive rows (see
    ``bertdata.sources.piece``).

    Raises InputError if the file is damaged or lacks a column that the settings name.
    """
    with _open(path) as opened:
        check_columns(opened.table.schema_arrow, settings, path)
        is_compressed = _is_compressed(path)
        for group, columns in enumerate(opened.list_columns(list_wanted_columns(settings))):
            size = sum(column.compressed for column in columns)
            # A worker that reads the group by itself holds all its records at once. That is only allowed if
            # the group is small, including texts that are stored once but occur in many rows.
            is_small = sum(column.uncompressed for column in columns) <= _LARGE_GROUP_BYTES
            if not is_compressed and is_small and _bound_shared_text(opened.file, columns) <= _SHARED_BYTES:
                yield RowGroupPiece(path, group, size, columns)
                continue
            yield from _split_large_group(opened, group, columns, settings, size)


def read_parquet_texts(path: str) -> Iterator[str]:
    """Yield every text in a Parquet file: in all columns, also inside lists and structs."""
    with _open(path) as opened:
        names = find_columns_with_texts(opened.table.schema_arrow)
        for group, columns in enumerate(opened.list_columns(names)):
            for batch in opened.read_group(group, names, columns):
                yield from read_batch_texts(batch, names)


def _split_large_group(
    opened: "_OpenFile", group: int, columns: Sequence[ColumnChunk], settings: RecordSettings, size: int
) -> Iterator[RowsPiece]:
    """Read the records of a large row group, and yield them in pieces.

    size: compressed bytes of the row group, for the progress display.
    """
    found, held = [], 0
    for batch in _read_batches(opened, group, columns, settings):
        found += batch
        held += sum(len(getattr(record, "text", "")) for record in batch)
        if held >= PIECE_BYTES:
            yield RowsPiece(number_records(found), 0)
            found, held = [], 0
    yield RowsPiece(number_records(found), size)


def _read_batches(
    opened: "_OpenFile", group: int, columns: Sequence[ColumnChunk], settings: RecordSettings
) -> Iterator[Any]:
    """Read the records of a row group, and yield them in lists of some hundred rows."""
    for batch in opened.read_group(group, list_wanted_columns(settings), columns):
        for fitting in split_batch(batch, settings):
            yield read_batch_records(fitting, settings)


def _choose_batch_rows(file: BinaryIO, columns: Iterable[ColumnChunk]) -> int:
    """Return how many rows to read at once.

    If pyarrow would copy a long shared text for every row, they are fewer.
    """
    longest = _bound_shared_text(file, columns)
    return max(1, min(_BATCH_ROWS, _BATCH_ROWS * _SHARED_BYTES // max(1, longest)))


def _bound_shared_text(file: BinaryIO, columns: Iterable[ColumnChunk]) -> int:
    """Return an upper bound for the size of a text that the row group stores once for many rows.

    Returns 0 if there is no such text. A shared text is in a dictionary page, or is stored as the difference
    to the text before it (DELTA_BYTE_ARRAY). pyarrow copies it for each row of a batch, which multiplies the
    memory.
    """
    longest = 0
    for column in columns:
        if column.physical_type != BYTE_ARRAY:
            continue
        if DELTA_BYTE_ARRAY in column.encodings:
            longest = max(longest, column.uncompressed)
        elif column.dictionary is not None and column.uncompressed > _SHARED_BYTES:
            longest = max(longest, _measure_dictionary(file, column))
    return longest


def _measure_dictionary(file: BinaryIO, column: ColumnChunk) -> int:
    """Return the uncompressed size of a column's dictionary page. If unknown, that of the whole column."""
    file.seek(max(0, column.dictionary or 0))
    header = parse_page_header(file.read(_PAGE_HEAD_BYTES))
    return column.uncompressed if header is None else header.uncompressed


def _is_compressed(path: str) -> bool:
    with storage.open_input(path) as file:
        return detect_packing(file.read(6)) is not None


@dataclass(frozen=True, slots=True)
class _OpenFile:
    """An open Parquet file: its path, the file, unpacked if it is compressed, and pyarrow's view of it."""

    path: str
    file: BinaryIO
    table: Any

    def list_columns(self, names: Sequence[str]) -> list[tuple[ColumnChunk, ...]]:
        """Return for each row group the column chunks of some columns.

        Raises InputError if the footer is damaged.
        """
        try:
            return read_column_chunks(self.file, names)
        except ValueError as error:
            raise _make_damage_error(self.path, f"footer: {error}") from None

    def read_group(self, group: int, names: Sequence[str], columns: Sequence[ColumnChunk]) -> Iterator[Any]:
        """Yield the Arrow record batches of some columns of a row group, of at most some hundred rows each.

        columns: the column chunks of these columns.
        Raises InputError if the row group is damaged.
        """
        with _translate_errors(self.path, f"row group {group}: "):
            if excess := find_excessive_page(self.file, columns):
                raise OSError(excess)
            rows = _choose_batch_rows(self.file, columns)
            yield from self.table.iter_batches(rows, row_groups=[group], columns=names)


@contextmanager
def _open(path: str) -> Iterator[_OpenFile]:
    """Open a Parquet file with pyarrow.

    Raises InputError if the file is damaged.
    """
    import_pyarrow(path)
    from pyarrow import parquet

    with (
        open_seekable(path) as file,
        _translate_errors(path),
        parquet.ParquetFile(file, memory_map=False, buffer_size=BLOCK_BYTES) as table,
    ):
        yield _OpenFile(path, file, table)


@contextmanager
def _translate_errors(path: str, place: str = "") -> Iterator[None]:
    """Turn pyarrow's errors about damaged data into an InputError that names the file.

    place: the part of the file that is being read, such as a row group, for the message.
    """
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, MemoryError, UnicodeDecodeError) as error:  # the last: a column's name
        raise _make_damage_error(path, str(error).partition("\n")[0], place) from None


def _make_damage_error(path: str, reason: str, place: str = "") -> InputError:
    return InputError(f"{path}: {place}is damaged Parquet: {reason}; fetch or make it again")
