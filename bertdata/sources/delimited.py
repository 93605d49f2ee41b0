"""Read rows of delimited text (CSV and TSV).

The sources, the evaluation sets and the tables for fine-tuning all use this reader. There are two ways of
quoting:

- ``csv`` (RFC 4180): a field in double quotes may contain separators and line ends. In it, ``""`` is a quote.
- ``none``: a quote is an ordinary character and every line is a row, as most programs write tab-separated
  files.

This file has quoting ``none``. Its second row has two fields, of which the first begins with a quote::

    text<TAB>id
    "I saw it once.<TAB>1

A file must be read from its start, because a line end inside quotes looks like any other line end.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal, NamedTuple, get_args

from bertdata.errors import SettingsError
from bertdata.io.file_kind import BOM, HEAD_BYTES

Quoting = Literal["csv", "none"]
QUOTING: tuple[Quoting, ...] = get_args(Quoting)

DEFAULT_DELIMITING: dict[str, tuple[str, Quoting]] = {"csv": (",", "csv"), "tsv": ("\t", "none")}
"""Default separator and way of quoting, by kind of file."""

SEPARATORS = (",", ";", "\t", "|")
"""The separators that are recognised automatically."""

_NAMED = {"tab": "\t", "\\t": "\t"}

_PASSED_BYTES = 1 << 20
_LINES_LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class Delimiting:
    """Rules by which a file is split into rows and fields.

    separator: character between two fields.
    quoting: "csv" or "none". The text at the top of this file describes both.
    passed: number of lines to skip before the first row.
    """

    separator: str
    quoting: Quoting
    passed: int = 0


class Row(NamedTuple):
    """One row of a file.

    line: number of its last line, from 1.
    fault: what is wrong with the row, empty for a good row.
    """

    line: int
    fields: list[str]
    fault: str = ""
    is_too_long: bool = False


class RowReader:
    """Reader of the rows of a file. A reader can be iterated over only once.

    Bytes that are not UTF-8 become lone surrogates (Python's error handler "surrogateescape").

    raw_bytes: longest accepted row in bytes. A longer row is skipped, and yielded as a row with a fault.
    read: number of bytes read so far.
    """

    def __init__(self, file: BinaryIO, delimiting: Delimiting, raw_bytes: int) -> None:
        self._delimiting = delimiting
        self._raw_bytes = raw_bytes
        self._lines = _Lines(file, raw_bytes, is_quoting=delimiting.quoting == "csv")

    @property
    def read(self) -> int:
        return self._lines.read

    def __iter__(self) -> Iterator[Row]:
        """Yield each row that is not empty."""
        for _ in range(self._delimiting.passed):
            self._lines.begin_row()
            next(self._lines, None)
        for row in self._read_quoted_rows() if self._delimiting.quoting == "csv" else self._read_plain_rows():
            if self._lines.is_too_long:
                yield Row(row.line, [], f"a row of more than {self._raw_bytes} bytes", is_too_long=True)
            elif row.fields or row.fault:
                yield row

    def _read_plain_rows(self) -> Iterator[Row]:
        """Yield the rows of a file without quoting, in which every line is a row."""
        while True:
            self._lines.begin_row()
            line = next(self._lines, None)
            if line is None:
                return
            text = line.removesuffix("\n").removesuffix("\r")
            yield Row(self._lines.number, text.split(self._delimiting.separator) if text else [])

    def _read_quoted_rows(self) -> Iterator[Row]:
        """Yield the rows of a file with quoted fields, which may contain line ends."""
        rows = csv.reader(self._lines, delimiter=self._delimiting.separator, strict=True)
        raise_field_limit(self._raw_bytes)
        while True:
            self._lines.begin_row()
            try:
                fields = next(rows, None)
            except csv.Error as error:
                yield Row(self._lines.number, [], f"is no CSV: {error} (--quoting none: quotes are text)")
                continue
            if fields is None:
                return
            yield Row(self._lines.number, fields)


class _Lines:
    """Iterator over the lines of a file as text, without a byte-order mark, for ``csv.reader``.

    If a row is longer than ``raw_bytes``, its remaining lines are skipped and ``is_too_long`` is set.
    """

    def __init__(self, file: BinaryIO, raw_bytes: int, *, is_quoting: bool) -> None:
        self._file = file
        self._raw_bytes = raw_bytes
        self._is_quoting = is_quoting
        self._held = 0
        self.is_too_long = False
        self.read = 0
        self.number = 0

    def begin_row(self) -> None:
        """Start to count the length of a new row, which begins with the next line."""
        self._held, self.is_too_long = 0, False

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        # csv.reader asks for a second line of the same row only while a quoted field is open.
        is_quoted = self._held > 0
        line = self._file.readline(self._raw_bytes - self._held + 1)
        if not line:
            raise StopIteration
        if not self.read:
            line = line.removeprefix(BOM) or b"\n"
        self.number += 1
        self.read += len(line)
        self._held += len(line)
        if self._held <= self._raw_bytes:
            return line.decode(errors="surrogateescape")
        self.is_too_long = True
        self._skip_row(line, is_quoted)
        # End the row in a way that csv.reader accepts. RowReader replaces the row by a row with a fault.
        return '"\n' if is_quoted else "\n"

    def _skip_row(self, line: bytes, is_quoted: bool) -> None:
        """Skip the remaining lines of a row that is too long."""
        is_quoted ^= self._has_odd_quotes(line)
        while is_quoted or not line.endswith(b"\n"):
            line = self._file.readline(_PASSED_BYTES)
            if not line:
                return
            self.read += len(line)
            is_quoted ^= self._has_odd_quotes(line)

    def _has_odd_quotes(self, line: bytes) -> bool:
        """Return True if the line contains an odd number of quotes, so that it opens or closes a quoted
        field.
        """
        return self._is_quoting and line.count(b'"') % 2 == 1


def raise_field_limit(size: int) -> None:
    """Allow the csv module to read fields of ``size`` characters.

    The limit is shared by the whole process (131,072 characters by default). It is never lowered, because
    another file may be half read. The length of a row is limited separately by ``raw_bytes``.
    """
    csv.field_size_limit(max(size, csv.field_size_limit()))


def parse_separator(given: str) -> str:
    """Return the separator that the user chose, for example a tab character for ``tab``.

    Raises SettingsError if the value is not a single usable character.
    """
    found = _NAMED.get(given, given)
    if len(found) != 1 or found in '"\r\n' or not found.isascii():
        raise SettingsError(f"separator is {given!r}, expected a single character, or tab")
    return found


def find_delimiting(
    head: bytes, path: str, kind: str, *, quoting: str | None = None, separator: str | None = None
) -> Delimiting:
    """Find out how a CSV or TSV file is split into rows and fields.

    If the first line of a .csv file has no comma, the other SEPARATORS are tried. A separator fits if it
    splits all of the first rows into the same number of fields. Raises SettingsError unless exactly one
    separator fits.

    head: first bytes of the file.
    path: path of the file, for errors.
    kind: "csv" or "tsv".
    quoting: the user's choice of quoting. None: the usual quoting of this kind.
    separator: the user's choice of separator. None: the separator is found in the first bytes.
    """
    usual, usual_quoting = DEFAULT_DELIMITING[kind]
    chosen: Quoting = "csv" if (quoting or usual_quoting) == "csv" else "none"
    if separator is not None:
        return Delimiting(parse_separator(separator), chosen)
    if (
        kind == "tsv"
        # keep the separator that the file's ending states: other marks in a text of a single column separate
        # nothing
    ):
        return Delimiting(usual, chosen)
    first = head.removeprefix(BOM).partition(b"\n")[0]
    # spreadsheet programs write a first line such as "sep=;"
    if first.startswith(b"sep=") and len(first.rstrip(b"\r")) == 5:
        return Delimiting(chr(first[4]), chosen, passed=1)
    # Try all separators on the first rows, and count the fields that each gives. For "a;b\n1;2\n" the counts
    # are {",": [1, 1], ";": [2, 2], "\t": [1, 1], "|": [1, 1]}, so only ";" is possible.
    widths = {mark: _count_fields(head, Delimiting(mark, chosen)) for mark in (usual, *SEPARATORS)}
    others = [mark for mark, found in widths.items() if found and found[0] > 1]
    if not others or usual in others:
        return Delimiting(usual, chosen)
    even = [mark for mark in others if len(set(widths[mark])) == 1]
    if len(even) == 1:
        return Delimiting(even[0], chosen)
    shown = first[:60].decode(errors="replace")
    raise SettingsError(
        f"{path}: its first line is {shown!r}, which may be several columns or one; say where it is cut: "
        f"--separator {_quote_separator(others[0])}, or --separator {_quote_separator(usual)} for one column"
    )


def _quote_separator(separator: str) -> str:
    """Return the separator as the user would type it in a shell, for an error message."""
    return "tab" if separator == "\t" else f"'{separator}'"


def _count_fields(head: bytes, delimiting: Delimiting) -> list[int]:
    """Return the number of fields of each row in the first bytes of a file, 0 for a faulty row.

    The last row is left out if it is faulty only because ``head`` ends in the middle of it.
    """
    whole = head.rpartition(b"\n")[0] + b"\n" if head.count(b"\n") > 1 else head
    found: list[int] = []
    last = ""
    for row in RowReader(io.BytesIO(whole), delimiting, len(whole) + 1):
        found.append(len(row.fields))
        last = row.fault
        if len(found) == _LINES_LOOKED_AT:
            break
    if last and len(head) == HEAD_BYTES and len(found) > 1:
        found.pop()  # the last row is cut: its quoted field continues after the head
    return found
