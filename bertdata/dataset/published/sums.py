"""Sums of shards that their makers published, one table a file, compressed.

Columns: name of the shard, and its sum as ``bertdata.shards.row_sums`` computes it.
"""

from importlib import resources

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.table_text import table_rows

_ENDING = ".tsv.xz"
_COLUMNS = ["name", "sum"]


def sum_table_names() -> list[str]:
    """Names of the tables, sorted."""
    files = resources.files(__package__).iterdir()
    return sorted(file.name.removesuffix(_ENDING) for file in files if file.name.endswith(_ENDING))


def find_sums(table: str) -> dict[str, str] | None:
    """The sums of a table by the shards' names: one of ours, or a .tsv file with columns name and sum.

    None where it is no table of sums. InputError for a line that is none of such a table.
    """
    if table in sum_table_names():
        import lzma  # not in every Python, and needed for our own tables alone

        packed = resources.files(__package__).joinpath(f"{table}{_ENDING}").read_bytes()
        return _parse(lzma.decompress(packed).decode(), table)
    if not table.endswith(".tsv"):
        return None
    text = storage.read_bytes(table).decode("utf-8", "replace")
    return _parse(text, table) if text.splitlines()[:1] == ["\t".join(_COLUMNS)] else None


def _parse(text: str, table: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, row in table_rows(text, table, delimiter="\t", quoted=False)[1:]:
        if len(row) != len(_COLUMNS) or len(row[1]) != 32 or row[0] in found:
            raise InputError(
                f"{table}: line {number}: expected another shard's name and its sum between tabs"
            )
        found[row[0]] = row[1]
    return found
