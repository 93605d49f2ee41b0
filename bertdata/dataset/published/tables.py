"""Sizes and md5s that the makers of a data set published, one table a file.

Columns: what the file is called in the announcement, bytes, md5 (``-`` where only the size was
published), and the paths it may have (alternatives between bars; ``*`` sums over several files).
"""

import csv
from dataclasses import dataclass
from importlib import resources

from bertdata.dataset.published.sums import sum_table_names
from bertdata.errors import InputError, UsageError
from bertdata.io import storage


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedFile:
    """One row of a table. Md5 is None where only the size was published."""

    label: str
    bytes: int
    md5: str | None
    paths: tuple[str, ...]


def table_names() -> list[str]:
    """Names of the tables, sorted."""
    files = resources.files(__package__).iterdir()
    return sorted(file.name.removesuffix(".tsv") for file in files if file.name.endswith(".tsv"))


def load_table(name: str) -> list[PublishedFile]:
    """The rows of a table, in order: one of ours by its name, any other by the path of its .tsv file.

    UsageError names the known tables; InputError for a file that is no such table.
    """
    if name.endswith(".tsv"):
        try:
            return _parse(storage.read_bytes(name).decode())
        except (KeyError, ValueError, TypeError, AttributeError):
            raise InputError(
                f"{name}: is no table, expected columns label, bytes, md5 and paths between tabs"
            ) from None
    if name not in table_names():
        raise UsageError(
            f"table {name!r} is not known; known are {', '.join([*table_names(), *sum_table_names()])}, "
            "or give a .tsv file"
        )
    return _parse(resources.files(__package__).joinpath(f"{name}.tsv").read_text(encoding="utf-8"))


def _parse(text: str) -> list[PublishedFile]:
    return [
        PublishedFile(
            label=row["label"],
            bytes=int(row["bytes"]),
            md5=None if row["md5"] == "-" else row["md5"],
            paths=tuple(row["paths"].split("|")),
        )
        for row in csv.DictReader(text.splitlines(), delimiter="\t")
    ]
