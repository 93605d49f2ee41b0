"""Reader of the tables of published file sizes and md5s, one table for each data set.

A table has four columns. label is the file's name in the publication. bytes is its size. md5 is its md5, or
``-`` if only the size was published. paths are the places where the file may be, separated by bars. A path
with ``*`` stands for several files, whose sizes are added up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from bertdata.dataset.published.sums import list_sum_tables
from bertdata.errors import InputError, UsageError
from bertdata.io import storage
from bertdata.io.patterns import LONGEST_PATTERN
from bertdata.io.table_text import decode_table, name_row_fields, parse_table


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedFile:
    """A row of a table, which describes a published file.

    md5: None if only the size was published.
    """

    label: str
    bytes: int
    md5: str | None
    paths: tuple[str, ...]


def list_table_names() -> list[str]:
    """Return the names of the built-in tables, sorted."""
    files = resources.files(__package__).iterdir()
    return sorted(file.name.removesuffix(".tsv") for file in files if file.name.endswith(".tsv"))


def load_table(name: str) -> list[PublishedFile]:
    """Load the rows of a table, in the order of its file.

    name: name of a built-in table, or path of a .tsv file.

    Raises UsageError for an unknown name and lists the known names. Raises InputError for a file that does
    not have the columns label, bytes, md5 and paths.
    """
    if name.endswith(".tsv"):
        return _parse_table(decode_table(storage.read_bytes(name), name), name)
    if name not in list_table_names():
        raise UsageError(
            f"table {name!r} is not known; known are {', '.join([*list_table_names(), *list_sum_tables()])}, "
            "or give a .tsv file"
        )
    return _parse_table(
        resources.files(__package__).joinpath(f"{name}.tsv").read_text(encoding="utf-8"), name
    )


def _parse_table(text: str, table: str) -> list[PublishedFile]:
    rows = parse_table(text, table, delimiter="\t", quoted=False)
    if not rows or not {"label", "bytes", "md5", "paths"} <= set(rows[0][1]):
        raise InputError(f"{table}: is no table, expected columns label, bytes, md5 and paths between tabs")
    return [_parse_row(row, f"{table}: line {number}") for number, row in name_row_fields(rows, table)]


def _parse_row(row: Mapping[str, str], where: str) -> PublishedFile:
    size = row["bytes"]
    if not (size.isascii() and size.isdecimal() and len(size) < 20):
        raise InputError(f"{where}: bytes is {size!r:.60}, expected a number of bytes")
    paths = tuple(row["paths"].split("|"))
    longest = max(map(len, paths))
    if longest > LONGEST_PATTERN:
        raise InputError(f"{where}: a path has {longest} characters, expected at most {LONGEST_PATTERN}")
    return PublishedFile(
        label=row["label"],
        bytes=int(size),
        md5=None if row["md5"] == "-" else row["md5"],
        paths=paths,
    )
