"""The rows of a run's tables."""

import csv
from pathlib import Path

from bertdata.io import storage


def read_table(path: Path) -> list[dict[str, str]]:
    """The complete rows of the table. A row that a crash cut off is left out."""
    lines = storage.read_bytes(str(path)).decode().splitlines()
    return [row for row in csv.DictReader(lines) if None not in row.values()]
