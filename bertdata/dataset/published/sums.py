"""Reader of the checksums that NVIDIA published for the shards of its data sets.

Each table is a compressed file with the columns name (of the shard) and sum (the checksum that
``bertdata.shards.row_sums`` defines).
"""

from importlib import resources

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.table_text import parse_table

_ENDING = ".tsv.xz"
_COLUMNS = ["name", "sum"]


def list_sum_tables() -> list[str]:
    """Return the names of the built-in tables of checksums, sorted. ``verify-md5`` can compare with them."""
    files = resources.files(__package__).iterdir()
    return sorted(file.name.removesuffix(_ENDING) for file in files if file.name.endswith(_ENDING))


def load_sums(table: str) -> dict[str, str] | None:
    """Load a table of checksums, by the name of the shard.

    Returns None if the table lacks the columns name and sum, and is therefore a table of another type.

    table: name of a built-in table, or path of a .tsv file.

    Raises InputError for a malformed line.
    """
    if table in list_sum_tables():
        import lzma  # some Python builds lack it, and only built-in tables need it

        packed = resources.files(__package__).joinpath(f"{table}{_ENDING}").read_bytes()
        return _parse_sums(lzma.decompress(packed).decode(), table)
    if not table.endswith(".tsv"):
        return None
    text = storage.read_bytes(table).decode("utf-8", "replace")
    return _parse_sums(text, table) if text.splitlines()[:1] == ["\t".join(_COLUMNS)] else None


def _parse_sums(text: str, table: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, row in parse_table(text, table, delimiter="\t", quoted=False)[1:]:
        if len(row) != len(_COLUMNS) or len(row[1]) != 32 or row[0] in found:
            raise InputError(
                f"{table}: line {number}: expected another shard's name and its sum between tabs"
            )
        found[row[0]] = row[1]
    return found
