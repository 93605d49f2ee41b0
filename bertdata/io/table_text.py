"""Tables of text that anybody may have written (CSV, TSV): the one reader of those read whole.

Sources of records, which may be larger than the memory, have their own: ``bertdata/sources/delimited.py``.
"""

import csv
import io
from collections.abc import Iterator, Sequence

from bertdata.errors import InputError
from bertdata.io.foreign_text import decode_utf8

MOST_COLUMNS = 10_000
"""The most columns of a table. One row of a few MB may hold millions, each with a name in every error."""

TableRow = tuple[int, list[str]]
"""The number of a row's last line, and its fields."""


def decode_table(data: bytes, where: str) -> str:
    """Return the text of a table without a byte-order mark. InputError names the byte that is not UTF-8."""
    try:
        return decode_utf8(data)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None


def table_rows(text: str, where: str, *, delimiter: str = ",", quoted: bool = True) -> list[TableRow]:
    r"""Return the rows that are not empty. InputError names the line of a field whose quote is never closed.

    quoted: False for tables in which a quote is a character like others. There a row ends with \n or \r\n.
    """
    if not quoted:
        lines = (line.removesuffix("\r") for line in text.split("\n"))
        return [(number, line.split(delimiter)) for number, line in enumerate(lines, 1) if line]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    limit = csv.field_size_limit(max(len(text), 1))  # the process's; its usual one is 131,072 characters
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InputError(f"{where}: line {reader.line_num}: is not CSV: {error}") from None
    finally:
        csv.field_size_limit(limit)


def check_heading(names: Sequence[str], where: str) -> None:
    """Raise InputError for a heading that names a column twice, or has more columns than any table."""
    if len(names) > MOST_COLUMNS:
        raise InputError(f"{where}: has {len(names):,} columns, expected at most {MOST_COLUMNS:,}")
    seen = set[str]()
    for name in names:
        if name and name in seen:  # columns without a name are the commas of an empty one
            raise InputError(f"{where}: names the column {name!r} twice; rename one of them")
        seen.add(name)


def named_rows(
    rows: Sequence[TableRow], where: str, *, skips_short: bool = False
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and the fields by name of each row below the heading, the first row.

    InputError for a heading that names a column twice, and for a row that has more or fewer fields.

    skips_short: rows with fewer fields are left out, as a program that was killed may have written them.
    """
    names = rows[0][1] if rows else []
    check_heading(names, f"{where}: line {rows[0][0]}" if rows else where)
    for number, fields in rows[1:]:
        if len(fields) == len(names):
            yield number, dict(zip(names, fields, strict=True))
        elif len(fields) > len(names) or not skips_short:
            raise InputError(
                f"{where}: line {number}: has {len(fields)} values, expected {len(names)}, a value a column"
            )
