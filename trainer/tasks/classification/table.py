"""Rows of a table (TSV, CSV, or JSON lines), and the bad rows among them."""

import io
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bertdata.errors import InputError
from bertdata.io.file_kind import HEAD_BYTES
from bertdata.io.json_text import NumberText
from bertdata.sources.delimited import RowReader, find_delimiting
from trainer.tasks.data_file import DataFile, parse_json

JSON_ENDINGS = (".jsonl", ".json")
_WRONG_BYTE = re.compile("[\udc80-\udcff]")  # what the error handler surrogateescape makes of such bytes

TableRow = Mapping[str, str]
"""Values of a table's row by column name. In TSV and CSV, also by column number from 0, as text."""

SHOWN_BAD_ROWS = 3
"""Number of bad rows that get a warning each. Most further bad rows are only counted."""


class BadRows:
    """The rows of a table that cannot be used as examples.

    lines: number of lines that these rows have in the file.
    """

    def __init__(self, *, are_skipped: bool = False, remedy: str = "") -> None:
        """Make an empty list.

        are_skipped: whether such rows are left out. Otherwise the first such row is an error.
        remedy: end of the error's message, for a row that is not the first of its table.
        """
        self.are_skipped = are_skipped
        self.lines = 0
        self._remedy = remedy
        self._faults: list[str] = []

    def add(self, fault: str, *, lines: int = 1, has_remedy: bool = True) -> None:
        """Add a bad row, or raise InputError if bad rows are not left out.

        fault: place of the row, and what is wrong with it.
        lines: number of lines that the row has.
        has_remedy: whether leaving out the row would help.
        """
        if not self.are_skipped:
            raise InputError(f"{fault}{self._remedy if has_remedy else ''}")
        self.lines += lines
        if len(self._faults) < SHOWN_BAD_ROWS or lines > 1:
            self._faults.append(fault)

    def warnings(self, name: str) -> list[str]:
        """Return warnings about the rows that were left out, then one with the number of their lines.

        The first rows get a warning each, and so does every row of several lines, because a quote that
        nothing closes may have joined the good rows after it.
        name: path of the table.
        """
        if not self.lines:
            return []
        count = "1 line is" if self.lines == 1 else f"{self.lines:,} lines are"
        return [
            *(f"{fault}; left out" for fault in self._faults),
            f"{name}: {count} left out (skip_bad_records)",
        ]


def read_rows(
    file: DataFile,
    *,
    heading: bool = True,
    quoting: str | None = None,
    strict: bool = False,
    bad: BadRows | None = None,
) -> Iterator[tuple[str, TableRow]]:
    """Yield each row of a table after its place in the file, which is the text ``FILE: line N``.

    The file's extension decides the format: CSV, JSON lines, or else TSV. A byte-order mark is removed, and
    empty lines are skipped. All values are texts. JSON values that are not texts are converted to JSON.
    heading: whether the first row of TSV and CSV names the columns.
    quoting: "csv" if double quotes enclose values, "none" if they are ordinary characters. None means "csv"
        for CSV files and "none" for TSV files.
    strict: whether rows of a TSV file may not be longer than the first row. In CSV files they never may.
    bad: list to which faulty rows are added if it leaves them out. None: the first faulty row is an error.
    Raises InputError that names the line, what was found, and what was expected.
    """
    bad = bad or BadRows()
    name, text = file.path, file.text("a table in UTF-8", keeps_wrong_bytes=bad.are_skipped)
    if name.endswith(JSON_ENDINGS):
        return _read_json_objects(text, name, bad)
    is_csv = name.endswith(".csv")
    rows = _split_rows(text, name, is_csv, quoting, heading, bad)
    return _name_columns(rows, name, heading, strict=is_csv or strict, bad=bad)


def _split_rows(
    text: str, name: str, is_csv: bool, quoting: str | None, heading: bool, bad: BadRows
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the list of values of each row of a TSV or CSV text.

    heading: whether the first row names the columns. Such a row is never left out, because the second row
        would be taken for the heading.
    bad: list to which all other faulty rows are added.
    """
    data = text.encode(errors="surrogateescape")
    delimiting = find_delimiting(data[:HEAD_BYTES], name, "csv" if is_csv else "tsv", quoting=quoting)
    before = delimiting.passed
    for row in RowReader(io.BytesIO(data), delimiting, len(data) + 1):
        lines, before = row.line - before, row.line
        fault = row.fault or _find_wrong_byte("".join(row.fields))
        is_heading, heading = heading, False
        if fault and is_heading:
            raise InputError(f"{name}: line {row.line}: {fault}")
        if row.fault:
            # A quote that nothing closes makes one row of all lines up to the end of the file.
            where = f"line {row.line}"
            if bad.are_skipped and lines > 1:
                where = f"lines {row.line - lines + 1} to {row.line}"
            bad.add(f"{name}: {where}: {row.fault}", lines=lines)
        elif fault:
            bad.add(f"{name}: line {row.line}: {fault}", lines=lines)
        else:
            yield row.line, row.fields


def _find_wrong_byte(text: str) -> str | None:
    """Return what is wrong with a text that has bytes that are not UTF-8, or None for a good text."""
    found = _WRONG_BYTE.search(text)
    return None if found is None else f"byte 0x{ord(found[0]) - 0xDC00:02x} is not UTF-8"


def _name_columns(
    rows: Iterator[tuple[int, list[str]]], name: str, heading: bool, *, strict: bool, bad: BadRows
) -> Iterator[tuple[str, TableRow]]:
    """Yield the place (``FILE: line N``) and the values by column of each row.

    heading: whether the first row names the columns.
    strict: whether rows may not be longer than the first. GLUE's own readers accept longer rows.
    bad: list to which faulty rows are added.
    """
    columns = next(rows, (0, []))[1] if heading else []
    most, reason = len(columns), "as the heading has columns"
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise InputError(f"{name}: line 1: names the column {twice!r} twice")
    for number, row in rows:
        if not most:
            most, reason = len(row), "as the first row has"
        if strict and len(row) > most:
            hint = "" if name.endswith(".csv") else "; a tab within a text divides it"
            bad.add(f"{name}: line {number}: has {len(row)} values, expected at most {most}, {reason}{hint}")
            continue
        yield (
            f"{name}: line {number}",
            {str(place): value for place, value in enumerate(row)} | dict(zip(columns, row, strict=False)),
        )


def _read_json_objects(text: str, name: str, bad: BadRows) -> Iterator[tuple[str, TableRow]]:
    """Yield the place (``FILE: line N``) and the values by key of each line, which must
    contain a JSON object.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{name}: line {number}"
        if (fault := _find_wrong_byte(line)) is not None:
            bad.add(f"{where}: {fault}")
            continue
        try:
            value = parse_json(line, where, "one object a line", any_number=True)
        except InputError as error:
            bad.add(str(error))
            continue
        if not isinstance(value, dict):
            bad.add(f"{where}: is {line.strip()!r:.40}, expected a JSON object")
            continue
        there = {key: item for key, item in value.items() if not _is_null_or_nan(item)}
        yield where, {key: _convert_to_text(one) for key, one in there.items()}


def _convert_to_text(value: Any) -> str:
    """Return a JSON value as the text of a table's cell.

    Texts are unchanged, and other values are written as JSON.
    """
    if isinstance(value, str | NumberText):
        return str(value)
    return json.dumps(value, default=str)


def _is_null_or_nan(value: Any) -> bool:
    """Return True if the value is null, or the NaN that pandas writes instead of null."""
    return value is None or value != value
