"""Tables of numbers, and functions that format numbers as text."""

from dataclasses import dataclass

Value = str | int | float | None
_WHOLE = 1_000
"""Numbers that are at least this large are shown without decimals."""


@dataclass(frozen=True, slots=True)
class DataTable:
    """A table of numbers. The first column names the row. The names of the other columns include the unit.

    caption: a noun phrase. It is never empty, because screen readers use it as the name of the table.
    page_rows: number of rows that are shown at once. A table with more rows also gets a search field. 0 shows
        all rows.
    wide: True if nothing may be placed beside the table.
    marked_rows: numbers of the rows, from 0, that stand out because the compared values differ.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    note: str = ""
    page_rows: int = 0
    wide: bool = False
    marked_rows: tuple[int, ...] = ()

    template = "table.html"


def format_value(value: Value) -> str:
    """Return a value as readable text, with commas between thousands.

    A number has four significant digits, or all digits before the decimal point if these are more.
    """
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and abs(value) < _WHOLE:
        return f"{value:,.4g}"
    return f"{value:,.0f}"


def format_full_value(value: Value) -> str:
    """Return a value as text for programs, in full precision."""
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)
