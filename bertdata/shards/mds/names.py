"""File names of MDS shards and the check for the package that MDS needs."""

import re

from bertdata.errors import MissingExtraError, install_extra

MDS = "mds"
"""Name of the container and ending of its files."""

INDEX_NAME = "index.json"

IDS_TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
"""Integer types that the ids in a column of type bytes may have."""

IDS_TYPE_HELP = "mds: type of the token ids (int64, uint16, ...), where the column holds bytes without a type"

_MDS_NAME = re.compile(r"\.mds(?:\.(br|bz2|gz|snappy|zstd))?$")


def is_mds_name(path: str) -> bool:
    """Return True for the name of an MDS shard, compressed or not."""
    return _MDS_NAME.search(path) is not None


def find_compression_ending(path: str) -> str | None:
    """Return the ending of the compression in a shard's name: a.mds.zstd -> zstd. None if there is none."""
    found = _MDS_NAME.search(path)
    return found[1] if found else None


def strip_ending(path: str) -> str:
    """Return a shard's name without the endings of the container and the compression."""
    return _MDS_NAME.sub("", path)


def load_numpy() -> None:
    """Raise MissingExtraError if NumPy is not installed."""
    try:
        import numpy  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError(f"MDS shards need the package numpy: {install_extra('mds')}") from None
