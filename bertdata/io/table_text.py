"""Reading of small CSV and TSV tables, such as settings and logs, from any source.

Files with input text may be larger than memory. They have another reader, ``bertdata/sources/delimited.py``.
"""

import csv
import io
from collections.abc import Iterator, Sequence

from bertdata.errors import InputError
from bertdata.io.foreign_text import decode_utf8

MOST_COLUMNS = 10_000
"""Most columns that a table may have.

Without a limit, a row of a few MB could have millions of columns, and an error message would name them all.
"""

TableRow = tuple[int, list[str]]
"""Number of the row's last line, and the row's fields."""


def decode_table(data: bytes, where: str) -> str:
    """Return the text of a table without a byte-order mark.

    Raises InputError for a byte that is not UTF-8. The message names the first such byte.
    """
    try:
        return decode_utf8(data)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None


def parse_table(text: str, where: str, *, delimiter: str = ",", quoted: bool = True) -> list[TableRow]:
    """Return the rows of a table that are not empty.

    Raises InputError with the line number if the CSV is invalid.

    where: path of the table, for the message.
    quoted: False for tables in which ``"`` is an ordinary character. A row of such a table always ends with
        its line.
    """
    if not quoted:
        lines = (line.removesuffix("\r") for line in text.split("\n"))
        return [(number, line.split(delimiter)) for number, line in enumerate(lines, 1) if line]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    # csv refuses fields of more than 131,072 characters. The limit is global, so it is restored below.
    limit = csv.field_size_limit(max(len(text), 1))
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InputError(f"{where}: line {reader.line_num}: is not CSV: {error}") from None
    finally:
        csv.field_size_limit(limit)


def check_heading(names: Sequence[str], where: str) -> None:
    """Raise InputError if two columns have the same name or there are more than MOST_COLUMNS columns."""
    if len(names) > MOST_COLUMNS:
        raise InputError(f"{where}: has {len(names):,} columns, expected at most {MOST_COLUMNS:,}")
    seen = set[str]()
    for name in names:
        if name and name in seen:  # several columns may be nameless, as in "a,b,,"
            raise InputError(f"{where}: names the column {name!r} twice; rename one of them")
        seen.add(name)


def name_row_fields(
    rows: Sequence[TableRow], where: str, *, skips_short: bool = False
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows after the heading, each as its line number and a dict from column name to field.

    The heading is the first row, which names the columns. Raises InputError if two columns have the same
    name, or if a row has more or fewer fields than there are columns.

    skips_short: skip rows with too few fields, which a killed program may have left.
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
