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
from bertdata.sources.table_records import check_columns
from bertdata.sources.unpacking import open_unpacked

DELIMITERS = {"csv": ",", "tsv": "\t"}

_BOM = "\ufeff"
_PASSED_BYTES = 1 << 20


class _Lines:
    """The lines of a file as texts, with bytes that are not UTF-8 as halves of surrogate pairs.

    raw_bytes: the longest record. The rest of a longer one is passed over, up to its own end, and
    ``too_long`` is set. read: bytes so far.
    """

    def __init__(self, file: BinaryIO, raw_bytes: int) -> None:
        self._file = file
        self._raw_bytes = raw_bytes
        self._held = 0
        self.too_long = False
        self.read = 0

    def begin(self) -> None:
        """The next line begins a record."""
        self._held, self.too_long = 0, False

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        is_quoted = self._held > 0  # a reader asks for a second line within quotes alone
        line = self._file.readline(self._raw_bytes - self._held + 1)
        if not line:
            raise StopIteration
        self.read += len(line)
        self._held += len(line)
        if self._held <= self._raw_bytes:
            return line.decode(errors="surrogateescape")
        self.too_long = True
        self._pass_record(line, is_quoted)
        return '"\n' if is_quoted else "\n"

    def _pass_record(self, line: bytes, is_quoted: bool) -> None:
        is_quoted ^= line.count(b'"') % 2 == 1
        while is_quoted or not line.endswith(b"\n"):
            line = self._file.readline(_PASSED_BYTES)
            if not line:
                return
            self.read += len(line)
            is_quoted ^= line.count(b'"') % 2 == 1


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
        check_columns(names, settings, path)
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
        lines.begin()
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield BadRecord(0, "malformed", f"is no CSV: {error}")
            continue
        if row is None:
            return
        if lines.too_long:
            yield BadRecord(0, "too_long", f"a record of more than {settings.raw_bytes} bytes")
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
