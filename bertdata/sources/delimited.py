"""Rows of delimited text, of sources, evaluation sets and tables to fine-tune on alike.

Quoting says what a double quote is. ``csv``, as RFC 4180 has it: a field within quotes may hold separators
and line ends, and ``""`` is a quote. ``none``: a quote is a character like any other, and a line is a row,
as programs that write tab-separated files mean it::

    text<TAB>id
    "I saw it once.<TAB>1        one row of two fields, the first begins with a quote

A file is read from its begin, since a line end within quotes looks like any other.
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

USUAL: dict[str, tuple[str, Quoting]] = {"csv": (",", "csv"), "tsv": ("\t", "none")}
"""The usual separator and quoting of each kind of file."""

SEPARATORS = (",", ";", "\t", "|")
"""The separators that are recognised."""

_NAMED = {"tab": "\t", "\\t": "\t"}

_PASSED_BYTES = 1 << 20
_LINES_LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class Delimiting:
    """The way in which a file is cut into rows and fields. passed: lines before the first row."""

    separator: str
    quoting: Quoting
    passed: int = 0


class Row(NamedTuple):
    """A row. line: the number of its last line, from 1. fault: why it is none, empty for a good row."""

    line: int
    fields: list[str]
    fault: str = ""
    is_too_long: bool = False


class RowReader:
    """The rows of a file, read once. Bytes that are not UTF-8 become halves of surrogate pairs.

    raw_bytes: the longest row; of a longer one no more is held. read: bytes so far.
    """

    def __init__(self, file: BinaryIO, delimiting: Delimiting, raw_bytes: int) -> None:
        self._delimiting = delimiting
        self._raw_bytes = raw_bytes
        self._lines = _Lines(file, raw_bytes, is_quoting=delimiting.quoting == "csv")

    @property
    def read(self) -> int:
        return self._lines.read

    def __iter__(self) -> Iterator[Row]:
        """Each row that holds something."""
        for _ in range(self._delimiting.passed):
            self._lines.begin()
            next(self._lines, None)
        for row in self._quoted_rows() if self._delimiting.quoting == "csv" else self._plain_rows():
            if self._lines.is_too_long:
                yield Row(row.line, [], f"a row of more than {self._raw_bytes} bytes", is_too_long=True)
            elif row.fields or row.fault:
                yield row

    def _plain_rows(self) -> Iterator[Row]:
        while True:
            self._lines.begin()
            line = next(self._lines, None)
            if line is None:
                return
            text = line.removesuffix("\n").removesuffix("\r")
            yield Row(self._lines.number, text.split(self._delimiting.separator) if text else [])

    def _quoted_rows(self) -> Iterator[Row]:
        rows = csv.reader(self._lines, delimiter=self._delimiting.separator, strict=True)
        allow_fields_of(self._raw_bytes)
        while True:
            self._lines.begin()
            try:
                fields = next(rows, None)
            except csv.Error as error:
                yield Row(self._lines.number, [], f"is no CSV: {error} (--quoting none: quotes are text)")
                continue
            if fields is None:
                return
            yield Row(self._lines.number, fields)


class _Lines:
    """The lines of a file as texts, without a byte-order mark.

    The rest of a row that is too long is passed over, up to its own end, and ``is_too_long`` is set.
    """

    def __init__(self, file: BinaryIO, raw_bytes: int, *, is_quoting: bool) -> None:
        self._file = file
        self._raw_bytes = raw_bytes
        self._is_quoting = is_quoting
        self._held = 0
        self.is_too_long = False
        self.read = 0
        self.number = 0

    def begin(self) -> None:
        """The next line begins a row."""
        self._held, self.is_too_long = 0, False

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        is_quoted = self._held > 0  # a reader asks for a second line within quotes alone
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
        self._pass_row(line, is_quoted)
        return '"\n' if is_quoted else "\n"

    def _pass_row(self, line: bytes, is_quoted: bool) -> None:
        is_quoted ^= self._has_odd_quotes(line)
        while is_quoted or not line.endswith(b"\n"):
            line = self._file.readline(_PASSED_BYTES)
            if not line:
                return
            self.read += len(line)
            is_quoted ^= self._has_odd_quotes(line)

    def _has_odd_quotes(self, line: bytes) -> bool:
        return self._is_quoting and line.count(b'"') % 2 == 1


def allow_fields_of(size: int) -> None:
    """Let a CSV field have so many characters. The limit is the process's, at first 131,072.

    It is only ever raised: another file may be half read, and rows have a limit of their own.
    """
    csv.field_size_limit(max(size, csv.field_size_limit()))


def parse_separator(given: str) -> str:
    """Return the separator of a flag. SettingsError for what is none."""
    found = _NAMED.get(given, given)
    if len(found) != 1 or found in '"\r\n' or not found.isascii():
        raise SettingsError(f"separator is {given!r}, expected a single character, or tab")
    return found


def find_delimiting(
    head: bytes, path: str, kind: str, *, quoting: str | None = None, separator: str | None = None
) -> Delimiting:
    """Return the way to cut a file of that kind. head: its first bytes. None: as kind or file have it.

    A .csv whose first line holds no comma is cut at another mark, if that cuts all of its first lines into as
    many fields. SettingsError where several do, or none.
    """
    usual, usual_quoting = USUAL[kind]
    chosen: Quoting = "csv" if (quoting or usual_quoting) == "csv" else "none"
    if separator is not None:
        return Delimiting(parse_separator(separator), chosen)
    if kind == "tsv":  # its name says the separator, and a line of one column may hold any other mark
        return Delimiting(usual, chosen)
    first = head.removeprefix(BOM).partition(b"\n")[0]
    if first.startswith(b"sep=") and len(first.rstrip(b"\r")) == 5:  # spreadsheets put such a line first
        return Delimiting(chr(first[4]), chosen, passed=1)
    widths = {mark: _widths(head, Delimiting(mark, chosen)) for mark in (usual, *SEPARATORS)}
    others = [mark for mark, found in widths.items() if found and found[0] > 1]
    if not others or usual in others:
        return Delimiting(usual, chosen)
    even = [mark for mark in others if len(set(widths[mark])) == 1]
    if len(even) == 1:
        return Delimiting(even[0], chosen)
    shown = first[:60].decode(errors="replace")
    raise SettingsError(
        f"{path}: its first line is {shown!r}, which may be several columns or one; say where it is cut: "
        f"--separator {_word(others[0])}, or --separator {_word(usual)} for one column"
    )


def _word(separator: str) -> str:
    """The separator as a shell takes it."""
    return "tab" if separator == "\t" else f"'{separator}'"


def _widths(head: bytes, delimiting: Delimiting) -> list[int]:
    """The number of fields of each of the first rows, 0 for a fault. The last row may be cut."""
    whole = head.rpartition(b"\n")[0] + b"\n" if head.count(b"\n") > 1 else head
    found: list[int] = []
    last = ""
    for row in RowReader(io.BytesIO(whole), delimiting, len(whole) + 1):
        found.append(len(row.fields))
        last = row.fault
        if len(found) == _LINES_LOOKED_AT:
            break
    if last and len(head) == HEAD_BYTES and len(found) > 1:
        found.pop()  # a field within quotes goes on behind the head
    return found
