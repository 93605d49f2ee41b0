"""Reading of a run's tables, and choice of the rows that stay when a run resumes."""

from collections.abc import Mapping
from pathlib import Path

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.table_text import decode_table, name_row_fields, parse_table


def read_table(path: Path) -> list[tuple[int, dict[str, str]]]:
    """Return the complete rows of the table, each with its line number. An incomplete last row is skipped.

    Raises InputError, with the line number, for a line that no run writes, because the table must have been
    damaged or edited.
    """
    where = str(path)
    rows = parse_table(decode_table(storage.read_bytes(where), where), where)
    try:
        return list(name_row_fields(rows, where, skips_short=True))
    except InputError as error:
        raise InputError(f"{error}; correct the line, or remove it") from None


def parse_step(row: Mapping[str, str], where: str) -> int:
    """Return the number of the row's update. Raises InputError if the row has no number.

    where: file and line, for the message.
    """
    step = row.get("step", "")
    if not (step.isascii() and step.isdecimal() and len(step) < 20):
        raise InputError(f"{where}: step is {step!r:.60}, expected the number of an update")
    return int(step)


def read_rows_of_update(output_dir: str, name: str, step: int) -> list[dict[str, str]]:
    """Return the rows of a run's table for one update, or [] if the table does not exist.

    output_dir: the run's directory on this machine.
    name: file name of the table.
    """
    path = Path(output_dir.removeprefix("file://")) / name
    if not path.exists():
        return []
    return [row for line, row in read_table(path) if parse_step(row, f"{path}: line {line}") == step]


def keep_rows(path: Path, resume_step: int | None) -> list[dict[str, str]]:
    """Return the rows of a table that stay when the run resumes: those up to ``resume_step``.

    An earlier version of the trainer may have written rows with fewer columns.
    resume_step: None if a new phase begins. Then the table of the earlier phase is renamed, and no row stays.
    """
    if resume_step is not None:
        found = read_table(path)
        return [row for line, row in found if parse_step(row, f"{path}: line {line}") <= resume_step]
    number = len(list(path.parent.glob(f"{path.stem}*.csv")))
    path.rename(path.with_suffix(f".{number}.csv"))
    return []
