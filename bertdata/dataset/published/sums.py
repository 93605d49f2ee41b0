"""Published sums of shards, one compressed table per data set.

Columns: the shard's name and its sum, as computed by ``bertdata.shards.row_sums``.
"""

from importlib import resources

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.table_text import parse_table

_ENDING = ".tsv.xz"
_COLUMNS = ["name", "sum"]


def sum_table_names() -> list[str]:
    """Return the names of the built-in tables, sorted."""
    files = resources.files(__package__).iterdir()
    return sorted(file.name.removesuffix(_ENDING) for file in files if file.name.endswith(_ENDING))


def find_sums(table: str) -> dict[str, str] | None:
    """Return the sums of a table by shard name. table: a built-in table's name, or the path of a .tsv file.

    None if it is not a table of sums, which is recognised by its columns name and sum. InputError for a bad
    line.
    """
    if table in sum_table_names():
        import lzma  # some Python builds lack it, and only built-in tables need it

        packed = resources.files(__package__).joinpath(f"{table}{_ENDING}").read_bytes()
        return _parse(lzma.decompress(packed).decode(), table)
    if not table.endswith(".tsv"):
        return None
    text = storage.read_bytes(table).decode("utf-8", "replace")
    return _parse(text, table) if text.splitlines()[:1] == ["\t".join(_COLUMNS)] else None


def _parse(text: str, table: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, row in parse_table(text, table, delimiter="\t", quoted=False)[1:]:
        if len(row) != len(_COLUMNS) or len(row[1]) != 32 or row[0] in found:
            raise InputError(
                f"{table}: line {number}: expected another shard's name and its sum between tabs"
            )
        found[row[0]] = row[1]
    return found
