"""File names of MDS shards, and a check that the package that MDS needs is installed."""

import re

from bertdata.errors import MissingExtraError, install_extra

MDS = "mds"
"""Name of the container MDS, and the ending of its files."""

INDEX_NAME = "index.json"

IDS_TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
"""The integer types that ids can have in a column of type bytes."""

IDS_TYPE_HELP = (
    "for MDS shards: type of the token ids, such as int64 or uint16; needed only if the ids are stored as "
    "bytes without a type"
)

_MDS_NAME = re.compile(r"\.mds(?:\.(br|bz2|gz|snappy|zstd))?$")


def is_mds_name(path: str) -> bool:
    """Return True if a file has the name of an MDS shard. The shard may be compressed."""
    return _MDS_NAME.search(path) is not None


def find_compression_ending(path: str) -> str | None:
    """Return the ending that names the compression of a shard, or None. For ``a.mds.zstd`` it is ``zstd``."""
    found = _MDS_NAME.search(path)
    return found[1] if found else None


def strip_ending(path: str) -> str:
    """Return a shard's name without the endings that name the container and the compression."""
    return _MDS_NAME.sub("", path)


def load_numpy() -> None:
    """Raise MissingExtraError if NumPy is not installed."""
    try:
        import numpy  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError(f"MDS shards need the package numpy: {install_extra('mds')}") from None
