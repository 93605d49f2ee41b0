"""Parquet: a small row group is a piece, which any worker reads, and one reader goes through a large one.

A compressed file is unpacked into a nameless one first, because its contents are listed at its end.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.spooled_file import SpooledFile
from bertdata.sources.piece import PIECE_BYTES, ReadPiece, RowsPiece, numbered
from bertdata.sources.settings import RecordSettings
from bertdata.sources.table_records import (
    batch_records,
    check_columns,
    pyarrow_of,
    text_columns,
    wanted_columns,
)
from bertdata.sources.unpacking import BLOCK_BYTES, open_unpacked, packing_of

_LARGE_GROUP_BYTES = 1 << 25
"""Bytes of the columns of a row group, uncompressed, from which on one reader goes through it."""
_MEMORY_BYTES = 1 << 26
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


def parquet_columns(path: str) -> list[str]:
    """The columns of texts."""
    with _open(path) as table:
        return text_columns(table.schema_arrow)


def parquet_pieces(path: str, settings: RecordSettings) -> Iterator[RowGroupPiece | RowsPiece]:
    """The pieces of a file."""
    with _open(path) as table:
        missing = [name for name in wanted_columns(settings) if name not in table.schema_arrow.names]
        if missing:
            raise InputError(f"{path}: has no column {missing[0]!r}")
        check_columns(table.schema_arrow.names, settings, path)
        packed = _is_packed(path)
        for group in range(table.num_row_groups):
            size, unpacked = _group_bytes(table, group, settings)
            if not packed and unpacked <= _LARGE_GROUP_BYTES:
                yield RowGroupPiece(path, group, size)
                continue
            yield from _rows_of_large(table, group, settings, path, size)


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
        if column.path_in_schema in wanted_columns(settings):
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

    spool = SpooledFile(_MEMORY_BYTES)
    try:
        with storage.open_input(path) as plain:
            file: Any = plain
            if _is_packed(path):
                with open_unpacked(path) as unpacked:
                    while block := unpacked.read(BLOCK_BYTES):
                        spool.write(block)
                file = spool.rewind()
            with _naming(path), parquet.ParquetFile(file, memory_map=False, buffer_size=BLOCK_BYTES) as table:
                yield table
    finally:
        spool.close()


@contextmanager
def _naming(path: str, place: str = "") -> Iterator[None]:
    """Turn what pyarrow says of damaged data into an error that names the file."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, MemoryError) as error:
        first = str(error).partition("\n")[0]
        raise InputError(f"{path}: {place}is damaged Parquet: {first}; fetch or make it again") from None
