"""CSV and TSV as RFC 4180 has them: a line of names, then a record a line, quoted where it holds line ends.

A file is read from its begin, since a line end within quotes looks like any other.
"""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from bertdata.errors import InputError
from bertdata.sources.json_lines import record_of
from bertdata.sources.piece import PIECE_BYTES, RowsPiece, numbered
from bertdata.sources.records import BadRecord, Record
from bertdata.sources.settings import RecordSettings
from bertdata.sources.unpacking import open_unpacked

DELIMITERS = {"csv": ",", "tsv": "\t"}

_BOM = "\ufeff"


class _Lines:
    """The lines of a file as texts, with bytes that are not UTF-8 as halves of surrogate pairs.

    raw_bytes: the longest; of a longer one its begin is read, and ``too_long`` is set. read: bytes so far.
    """

    def __init__(self, file: BinaryIO, raw_bytes: int) -> None:
        self._file = file
        self._raw_bytes = raw_bytes
        self.too_long = False
        self.read = 0

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = self._file.readline(self._raw_bytes)
        if not line:
            raise StopIteration
        self.read += len(line)
        if len(line) == self._raw_bytes and not line.endswith(b"\n"):
            self.too_long = True
            while (rest := self._file.readline(1 << 20)) and not rest.endswith(b"\n"):
                self.read += len(rest)
            line = line[:1] + b"\n"
        return line.decode(errors="surrogateescape")


def csv_columns(path: str, delimiter: str) -> list[str]:
    """The names in the first line. InputError where there is none."""
    with open_unpacked(path) as file:
        names = _names(csv.reader(_Lines(file, 1 << 20), delimiter=delimiter, strict=True), path)
    return names


def _names(rows: Iterator[list[str]], path: str) -> list[str]:
    try:
        names = next(rows, [])
    except csv.Error as error:
        raise InputError(f"{path}: record 0: the line of names is no CSV: {error}") from None
    if not any(names):
        raise InputError(f"{path}: has no line of names, expected one before the first record")
    return [names[0].removeprefix(_BOM), *names[1:]]


def csv_pieces(path: str, settings: RecordSettings, *, delimiter: str) -> Iterator[RowsPiece]:
    """The pieces of a file with this delimiter."""
    with _longest_field(settings.raw_bytes), open_unpacked(path) as file:
        lines, found, told = _Lines(file, settings.raw_bytes), [], 0
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
        names = _names(rows, path)
        for record in _records(lines, rows, names, settings):
            found.append(record)
            if lines.read - told >= PIECE_BYTES:
                yield RowsPiece(numbered(found), lines.read - told)
                found, told = [], lines.read
        yield RowsPiece(numbered(found), lines.read - told)


def _records(
    lines: _Lines, rows: Iterator[list[str]], names: list[str], settings: RecordSettings
) -> Iterator[Record | BadRecord]:
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            long = "field larger" in str(error)
            yield BadRecord(0, "too_long" if long else "malformed", f"is no CSV: {error}")
            continue
        if row is None:
            return
        if lines.too_long:
            lines.too_long = False
            yield BadRecord(0, "too_long", f"a line of more than {settings.raw_bytes} bytes")
        elif row:
            yield _record(row, names, settings)


def _record(row: list[str], names: list[str], settings: RecordSettings) -> Record | BadRecord:
    if len(row) != len(names):
        return BadRecord(0, "malformed", f"has {len(row)} fields, expected {len(names)}")
    return record_of(0, dict(zip(names, row, strict=True)), settings)


@contextmanager
def _longest_field(size: int) -> Iterator[None]:
    """The time in which a field may have so many characters. The limit is the process's."""
    before = csv.field_size_limit(size)
    try:
        yield
    finally:
        csv.field_size_limit(before)
