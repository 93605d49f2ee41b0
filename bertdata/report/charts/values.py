"""Tables of numbers, and numbers as text."""

from dataclasses import dataclass

Value = str | int | float | None
_WHOLE = 100_000
"""Numbers from this size on are shown without decimals."""


@dataclass(frozen=True, slots=True)
class DataTable:
    """A table. Each column's name includes the unit, and the first column names the row.

    caption: a noun phrase, never empty, because screen readers use it as the table's name.
    page_rows: rows shown at once, with a search field if there are more. 0 means all rows.
    wide: nothing is placed next to the table.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    note: str = ""
    page_rows: int = 0
    wide: bool = False

    template = "table.html"


def format_value(value: Value) -> str:
    """Return the value for readers: commas between thousands, at most six significant digits."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and abs(value) < _WHOLE:
        return f"{value:,.6g}"
    return f"{value:,.0f}"


def format_full_value(value: Value) -> str:
    """Return the value for programs, in full precision."""
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)
