"""Arrow's stream format, as the package ``datasets`` keeps it, and its file format, read from the begin."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from bertdata.errors import InputError
from bertdata.sources.piece import PIECE_BYTES, Found, RowsPiece, numbered
from bertdata.sources.settings import RecordSettings
from bertdata.sources.table_records import (
    batch_records,
    check_columns,
    pyarrow_of,
    text_columns,
    wanted_columns,
)
from bertdata.sources.unpacking import open_unpacked

FILE_MAGIC = b"ARROW1\0\0"
STREAM_MARK = b"\xff\xff\xff\xff"
_END = b"\xff\xff\xff\xff\0\0\0\0"
_SLICE_ROWS = 256


def arrow_columns(path: str) -> list[str]:
    """The columns of texts."""
    with _open(path) as (schema, _):
        return text_columns(schema)


def arrow_pieces(path: str, settings: RecordSettings) -> Iterator[RowsPiece]:
    """The pieces of a file."""
    with _open(path) as (schema, batches):
        missing = [name for name in wanted_columns(settings) if name not in schema.names]
        if missing:
            raise InputError(f"{path}: has no column {missing[0]!r}")
        check_columns(schema.names, settings, path)
        found: Found = []
        held = 0
        for batch in batches:
            for start in range(0, batch.num_rows, _SLICE_ROWS):
                records = batch_records(batch.slice(start, _SLICE_ROWS), settings)
                found += records
                held += sum(len(getattr(record, "text", "")) for record in records)
                if held >= PIECE_BYTES:
                    yield RowsPiece(numbered(found), held)
                    found, held = [], 0
        yield RowsPiece(numbered(found), held)


@contextmanager
def _open(path: str) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Schema and batches of rows. The blocks of a file are a stream behind eight bytes."""
    pyarrow = pyarrow_of(path)
    with open_unpacked(path) as unpacked:
        file = _WatchedFile(unpacked)
        try:
            with pyarrow.ipc.open_stream(pyarrow.PythonFile(file, mode="r")) as stream:
                yield stream.schema, _until_end(stream, file)
        except (pyarrow.ArrowException, OSError, EOFError, MemoryError) as error:
            first = str(error).partition("\n")[0]
            raise InputError(f"{path}: is damaged Arrow data: {first}; fetch or make it again") from None


class _WatchedFile:
    """A file without the eight bytes of the file format, and the last bytes that were read of it."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        head = file.read(len(FILE_MAGIC))
        self._waiting = b"" if head == FILE_MAGIC else head
        self.last = b""

    def read(self, size: int) -> bytes:
        data, self._waiting = self._waiting[:size], self._waiting[size:]
        data += self._file.read(size - len(data))
        self.last = (self.last + data[-len(_END) :])[-len(_END) :]
        return data

    def close(self) -> None:
        """The file is closed by the one who opened it."""


def _until_end(stream: Any, file: _WatchedFile) -> Iterator[Any]:
    """The batches. EOFError where the mark of the end is missing, which the library takes for an end."""
    yield from stream
    if file.last != _END:
        raise EOFError("it is cut short")
