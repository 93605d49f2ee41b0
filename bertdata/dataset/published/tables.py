"""Sizes and md5s that the makers of a data set published, one table a file.

Columns: what the file is called in the announcement, bytes, md5 (``-`` where only the size was
published), and the paths it may have (alternatives between bars; ``*`` sums over several files).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from bertdata.dataset.published.sums import sum_table_names
from bertdata.errors import InputError, UsageError
from bertdata.io import storage
from bertdata.io.table_text import decode_table, named_rows, table_rows


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
        return _parse(decode_table(storage.read_bytes(name), name), name)
    if name not in table_names():
        raise UsageError(
            f"table {name!r} is not known; known are {', '.join([*table_names(), *sum_table_names()])}, "
            "or give a .tsv file"
        )
    return _parse(resources.files(__package__).joinpath(f"{name}.tsv").read_text(encoding="utf-8"), name)


def _parse(text: str, table: str) -> list[PublishedFile]:
    rows = table_rows(text, table, delimiter="\t", quoted=False)
    if not rows or not {"label", "bytes", "md5", "paths"} <= set(rows[0][1]):
        raise InputError(f"{table}: is no table, expected columns label, bytes, md5 and paths between tabs")
    return [_published(row, f"{table}: line {number}") for number, row in named_rows(rows, table)]


def _published(row: Mapping[str, str], where: str) -> PublishedFile:
    size = row["bytes"]
    if not (size.isascii() and size.isdecimal() and len(size) < 20):
        raise InputError(f"{where}: bytes is {size!r:.60}, expected a number of bytes")
    return PublishedFile(
        label=row["label"],
        bytes=int(size),
        md5=None if row["md5"] == "-" else row["md5"],
        paths=tuple(row["paths"].split("|")),
    )
