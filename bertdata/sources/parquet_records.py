"""Parquet: a small row group is a piece, which any worker reads, and one reader goes through a large one.

A compressed file is unpacked into a nameless one first, because its contents are listed at its end.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.sources.fields import TextFields
from bertdata.sources.piece import PIECE_BYTES, ReadPiece, RowsPiece, numbered
from bertdata.sources.settings import RecordSettings
from bertdata.sources.table_records import (
    batch_records,
    batch_texts,
    check_columns,
    columns_with_texts,
    pyarrow_of,
    text_columns,
    wanted_columns,
)
from bertdata.sources.unpacking import BLOCK_BYTES, open_seekable, packing_of

_LARGE_GROUP_BYTES = 1 << 25
"""Bytes of the columns of a row group, uncompressed, from which on one reader goes through it."""
_BATCH_ROWS = 256


@dataclass(frozen=True, slots=True)
class RowGroupPiece:
    """The rows of one row group."""

    path: str
    group: int
    bytes: int

    def read(self, settings: RecordSettings) -> ReadPiece:
        with _open(self.path) as table:
            found = [record for batch in _batches(table, self.group, settings, self.path) for record in batch]
        found = numbered(found)
        return ReadPiece(found, len(found))


def parquet_columns(path: str, settings: RecordSettings) -> TextFields:
    """The columns of texts."""
    with _open(path) as table:
        return text_columns(table.schema_arrow)


def parquet_pieces(path: str, settings: RecordSettings) -> Iterator[RowGroupPiece | RowsPiece]:
    """The pieces of a file."""
    with _open(path) as table:
        check_columns(table.schema_arrow, settings, path)
        packed = _is_packed(path)
        for group in range(table.num_row_groups):
            size, unpacked = _group_bytes(table, group, settings)
            if not packed and unpacked <= _LARGE_GROUP_BYTES:
                yield RowGroupPiece(path, group, size)
                continue
            yield from _rows_of_large(table, group, settings, path, size)


def parquet_texts(path: str) -> Iterator[str]:
    """All texts of all columns of a file, at any depth."""
    with _open(path) as table:
        names = columns_with_texts(table.schema_arrow)
        with _naming(path):
            for batch in table.iter_batches(_BATCH_ROWS, columns=names):
                yield from batch_texts(batch, names)


def _rows_of_large(
    table: Any, group: int, settings: RecordSettings, path: str, size: int
) -> Iterator[RowsPiece]:
    found, held = [], 0
    for batch in _batches(table, group, settings, path):
        found += batch
        held += sum(len(getattr(record, "text", "")) for record in batch)
        if held >= PIECE_BYTES:
            yield RowsPiece(numbered(found), 0)
            found, held = [], 0
    yield RowsPiece(numbered(found), size)


def _batches(table: Any, group: int, settings: RecordSettings, path: str) -> Iterator[Any]:
    """The records of a row group, some rows at a time."""
    batches = table.iter_batches(_BATCH_ROWS, row_groups=[group], columns=wanted_columns(settings))
    with _naming(path, f"row group {group}: "):
        for batch in batches:
            yield batch_records(batch, settings)


def _group_bytes(table: Any, group: int, settings: RecordSettings) -> tuple[int, int]:
    """Bytes of the wanted columns of a row group, in the file and uncompressed."""
    facts, size, unpacked = table.metadata.row_group(group), 0, 0
    for number in range(facts.num_columns):
        column = facts.column(number)
        path = column.path_in_schema  # of a list text.list.element, of a field in structs a.b
        if any(path == name or path.startswith(f"{name}.") for name in wanted_columns(settings)):
            size += column.total_compressed_size
            unpacked += column.total_uncompressed_size
    return size, unpacked


def _is_packed(path: str) -> bool:
    with storage.open_input(path) as file:
        return packing_of(file.read(6)) is not None


@contextmanager
def _open(path: str) -> Iterator[Any]:
    """The file, opened by pyarrow. InputError for one that is damaged."""
    pyarrow_of(path)
    from pyarrow import parquet

    with (
        open_seekable(path) as file,
        _naming(path),
        parquet.ParquetFile(file, memory_map=False, buffer_size=BLOCK_BYTES) as table,
    ):
        yield table


@contextmanager
def _naming(path: str, place: str = "") -> Iterator[None]:
    """Turn what pyarrow says of damaged data into an error that names the file."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, MemoryError) as error:
        first = str(error).partition("\n")[0]
        raise InputError(f"{path}: {place}is damaged Parquet: {first}; fetch or make it again") from None
