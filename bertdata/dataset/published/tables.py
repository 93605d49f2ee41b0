"""Sizes and md5s that the makers of a data set published, one table a file.

Columns: what the file is called in the announcement, bytes, md5 (``-`` where only the size was
published), and the paths it may have (alternatives between bars; ``*`` sums over several files).
"""

import csv
from dataclasses import dataclass
from importlib import resources

from bertdata.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedFile:
    """One row of a table; md5 is None where only the size was published."""

    label: str
    bytes: int
    md5: str | None
    paths: tuple[str, ...]


def table_names() -> list[str]:
    """Names of the tables, sorted."""
    files = resources.files(__package__).iterdir()
    return sorted(file.name.removesuffix(".tsv") for file in files if file.name.endswith(".tsv"))


def load_table(name: str) -> list[PublishedFile]:
    """The rows of a table, in order; UsageError names the known tables."""
    if name not in table_names():
        raise UsageError(f"table {name!r} is not known; known are {', '.join(table_names())}")
    text = resources.files(__package__).joinpath(f"{name}.tsv").read_text(encoding="utf-8")
    return [
        PublishedFile(
            label=row["label"],
            bytes=int(row["bytes"]),
            md5=None if row["md5"] == "-" else row["md5"],
            paths=tuple(row["paths"].split("|")),
        )
        for row in csv.DictReader(text.splitlines(), delimiter="\t")
    ]
