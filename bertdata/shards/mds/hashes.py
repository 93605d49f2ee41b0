"""Compute the hashes of shards that an MDS index can contain, such as sha1 or xxh64.

hashlib computes most of them, and the package xxhash the others.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from bertdata.errors import MissingExtraError, SettingsError, install_extra

_XXHASHES = ("xxh128", "xxh32", "xxh3_128", "xxh3_64", "xxh64")
NAMES = (
    *sorted(name for name in hashlib.algorithms_guaranteed if not name.startswith("shake_")),
    *_XXHASHES,
)
"""Names of the hash functions that an MDS index may use."""


def check_hashes(names: Iterable[str]) -> tuple[str, ...]:
    """Check the names of hash functions and return them sorted.

    Raises SettingsError for an unknown name, MissingExtraError if its package is missing.
    """
    found = tuple(sorted(set(names)))
    for name in found:
        _find_hash_function(name)
    return found


def compute_hashes(data: bytes | memoryview, names: Iterable[str]) -> dict[str, str]:
    """Return the hashes of the data by name, as hexadecimal digits."""
    return {name: str(_find_hash_function(name)(data).hexdigest()) for name in names}


def _find_hash_function(name: str) -> Callable[..., Any]:
    if name not in NAMES:
        raise SettingsError(f"unknown hash {name!r}, expected {', '.join(NAMES)}")
    if name not in _XXHASHES:
        return lambda data: hashlib.new(name, data, usedforsecurity=False)
    try:
        import xxhash
    except ModuleNotFoundError:
        raise MissingExtraError(f"hash {name} needs the package xxhash: {install_extra('mds')}") from None
    found: Callable[..., Any] = getattr(xxhash, name)
    return found
