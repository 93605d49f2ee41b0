"""The rows of a run's tables, and those that it goes on with."""

import csv
from pathlib import Path

from bertdata.io import storage


def read_table(path: Path) -> list[dict[str, str]]:
    """The complete rows of the table. A row that a crash cut off is left out."""
    lines = storage.read_bytes(str(path)).decode().splitlines()
    return [row for row in csv.DictReader(lines) if None not in row.values()]


def take_up(path: Path, resume_step: int | None) -> list[dict[str, str]]:
    """The rows up to the resumed step, which an earlier version wrote with fewer columns.

    None: a new phase begins. The table of the earlier one is renamed.
    """
    if resume_step is not None:
        return [row for row in read_table(path) if int(row["step"]) <= resume_step]
    number = len(list(path.parent.glob(f"{path.stem}*.csv")))
    path.rename(path.with_suffix(f".{number}.csv"))
    return []
