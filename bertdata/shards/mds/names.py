"""Names of MDS: the container's, those of its files, and the package that it needs."""

import re

from bertdata.errors import MissingExtraError, install_extra

MDS = "mds"
"""The container's name, and the ending of its files."""

INDEX_NAME = "index.json"

IDS_TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
"""The types that the ids in a column of bytes may have."""

IDS_TYPE_HELP = "mds: type of the token ids (int64, uint16, ...), where the column holds bytes without a type"

_MDS_NAME = re.compile(r"\.mds(?:\.(br|bz2|gz|snappy|zstd))?$")


def is_mds_name(path: str) -> bool:
    """True for the name of an MDS shard, compressed or not."""
    return _MDS_NAME.search(path) is not None


def ending_of(path: str) -> str | None:
    """The compression's ending in a shard's name. None where it has none."""
    found = _MDS_NAME.search(path)
    return found[1] if found else None


def without_ending(path: str) -> str:
    """A shard's file name without that of its container, and of its compression."""
    return _MDS_NAME.sub("", path)


def load_numpy() -> None:
    """MissingExtraError where NumPy is not installed."""
    try:
        import numpy  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError(f"MDS shards need the package numpy: {install_extra('mds')}") from None
