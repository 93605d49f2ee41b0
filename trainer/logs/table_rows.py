"""Rows of a run's tables, and which of them a resumed run keeps."""

from collections.abc import Mapping
from pathlib import Path

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.table_text import decode_table, name_row_fields, parse_table


def read_table(path: Path) -> list[tuple[int, dict[str, str]]]:
    """Return the complete rows of the table, each with its line number. An incomplete last row is skipped.

    Raises InputError, with the line's number, for a line that no run can have written, so that it must have
    been damaged or edited.
    """
    where = str(path)
    rows = parse_table(decode_table(storage.read_bytes(where), where), where)
    try:
        return list(name_row_fields(rows, where, skips_short=True))
    except InputError as error:
        raise InputError(f"{error}; correct the line, or remove it") from None


def parse_step(row: Mapping[str, str], where: str) -> int:
    """Return the number of the row's update. Raises InputError if it is not a number."""
    step = row.get("step", "")
    if not (step.isascii() and step.isdecimal() and len(step) < 20):
        raise InputError(f"{where}: step is {step!r:.60}, expected the number of an update")
    return int(step)


def keep_rows(path: Path, resume_step: int | None) -> list[dict[str, str]]:
    """Return the rows up to the resumed step. An earlier version may have written them with fewer columns.

    resume_step: None if a new phase begins. Then the earlier phase's table is renamed.
    """
    if resume_step is not None:
        found = read_table(path)
        return [row for line, row in found if parse_step(row, f"{path}: line {line}") <= resume_step]
    number = len(list(path.parent.glob(f"{path.stem}*.csv")))
    path.rename(path.with_suffix(f".{number}.csv"))
    return []
