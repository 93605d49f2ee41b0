"""Read records from Arrow files: both the stream format, which ``datasets`` writes, and the file format."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from bertdata.errors import InputError
from bertdata.sources.fields import TextFields
from bertdata.sources.piece import PIECE_BYTES, Found, RowsPiece, number_records
from bertdata.sources.settings import RecordSettings
from bertdata.sources.table_records import (
    check_columns,
    find_columns_with_texts,
    find_text_columns,
    import_pyarrow,
    read_batch_records,
    read_batch_texts,
    split_batch,
)
from bertdata.sources.unpacking import open_seekable, open_unpacked

FILE_MAGIC = b"ARROW1\0\0"
STREAM_MARK = b"\xff\xff\xff\xff"
_END = b"\xff\xff\xff\xff\0\0\0\0"
_SLICE_ROWS = 256


def find_arrow_columns(path: str, settings: RecordSettings) -> TextFields:
    """Return the names of the columns of an Arrow file that hold text."""
    with _open(path) as (schema, _):
        return find_text_columns(schema)


def split_arrow(path: str, settings: RecordSettings) -> Iterator[RowsPiece]:
    """Read the records of an Arrow file, and yield them in pieces, that is, groups of consecutive records.

    Raises InputError if the file is damaged or lacks a column that the settings name.
    """
    with _open(path) as (schema, batches):
        check_columns(schema, settings, path)
        found: Found = []
        held = 0
        for batch in batches:
            for start in range(0, batch.num_rows, _SLICE_ROWS):
                for rows in split_batch(batch.slice(start, _SLICE_ROWS), settings):
                    records = read_batch_records(rows, settings)
                    found += records
                    held += sum(len(getattr(record, "text", "")) for record in records)
                    if held >= PIECE_BYTES:
                        yield RowsPiece(number_records(found), held)
                        found, held = [], 0
        yield RowsPiece(number_records(found), held)


def read_arrow_texts(path: str) -> Iterator[str]:
    """Yield every text in an Arrow file: in all columns, also inside lists and structs."""
    with _open(path) as (schema, batches):
        names = find_columns_with_texts(schema)
        for batch in batches:
            yield from read_batch_texts(batch, names)


@contextmanager
def _open(path: str) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Open an Arrow file and yield its schema and its batches of rows.

    A file in Arrow's file format consists of blocks, and its footer says where each block is. Arrow's own
    libraries write eight magic bytes followed by a stream, so their files can be read like a stream. Other
    writers, such as polars, place the blocks differently. Their files are read with the help of the footer.
    """
    pyarrow = import_pyarrow(path)
    with open_unpacked(path) as unpacked:
        head = unpacked.read(len(FILE_MAGIC) + len(STREAM_MARK))
        by_footer = head.startswith(FILE_MAGIC) and not head.endswith(STREAM_MARK)
        try:
            with (
                _open_file_format(path, pyarrow)
                if by_footer
                else _open_stream_format(head, unpacked, pyarrow) as opened
            ):
                yield opened
        # UnicodeDecodeError: the name of a column is not UTF-8
        except (pyarrow.ArrowException, OSError, EOFError, MemoryError, UnicodeDecodeError) as error:
            first = str(error).partition("\n")[0]
            raise InputError(f"{path}: is damaged Arrow data: {first}; fetch or make it again") from None


@contextmanager
def _open_stream_format(head: bytes, unpacked: BinaryIO, pyarrow: Any) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Open a file that can be read as a stream, and yield its schema and its batches of rows.

    head: first bytes of the file.
    unpacked: the file after these bytes.
    """
    file = _WatchedFile(head.removeprefix(FILE_MAGIC), unpacked)
    with pyarrow.ipc.open_stream(pyarrow.PythonFile(file, mode="r")) as stream:
        yield stream.schema, _read_until_end(stream, file)


@contextmanager
def _open_file_format(path: str, pyarrow: Any) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Open a file in Arrow's file format with the help of its footer, and yield its schema and batches of
    rows.
    """
    with open_seekable(path) as file, pyarrow.ipc.open_file(pyarrow.PythonFile(file, mode="r")) as table:
        yield table.schema, map(table.get_batch, range(table.num_record_batches))


class _WatchedFile:
    """File object that remembers the last bytes that were read, which show whether the stream has its end
    mark.

    waiting: first bytes of the stream, which were already read from the file.
    last: the last bytes that were read.
    """

    closed = False

    def __init__(self, waiting: bytes, file: BinaryIO) -> None:
        self._file = file
        self._waiting = waiting
        self.last = b""

    def read(self, size: int) -> bytes:
        data, self._waiting = self._waiting[:size], self._waiting[size:]
        data += self._file.read(size - len(data))
        self.last = (self.last + data[-len(_END) :])[-len(_END) :]
        return data

    def close(self) -> None:
        """Do nothing. The caller that opened the file closes it."""


def _read_until_end(stream: Any, file: _WatchedFile) -> Iterator[Any]:
    """Yield the batches of a stream.

    Raises EOFError if the stream has no end mark. pyarrow accepts such a stream, so without this check a
    truncated file would seem complete.
    """
    yield from stream
    if file.last != _END:
        raise EOFError("it is cut short")
