"""The numbers behind a chart or of a table, and their form for a reader."""

from dataclasses import dataclass

Value = str | int | float | None
_WHOLE = 100_000
"""From here on a number is shown without decimals."""


@dataclass(frozen=True, slots=True)
class DataTable:
    """Columns with their units, and rows of values.

    The first column names the row.
    caption: a noun phrase, never empty: it is the table's name for a screen reader. page_rows: rows shown
    at once, with a search above, where there are more; 0 shows all. wide: nothing stands beside it.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    note: str = ""
    page_rows: int = 0
    wide: bool = False

    template = "table.html"


def shown(value: Value) -> str:
    """The value as a person reads it: thousands apart, at most six digits that count."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and abs(value) < _WHOLE:
        return f"{value:,.6g}"
    return f"{value:,.0f}"


def copied(value: Value) -> str:
    """The value as a program reads it."""
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)
