"""Compression of whole shards: zstd, gz, bz2, br and snappy, with a level as in ``zstd:9``.

The compressed bytes depend on the library, not on clock or machine: gzip's time is 0.
"""

import bz2
import gzip
from dataclasses import dataclass
from typing import Any

from bertdata.errors import MissingExtraError, SettingsError, ShardError, install_extra

_LEVELS = {"br": range(12), "bz2": range(1, 10), "gz": range(10), "snappy": range(0), "zstd": range(1, 23)}
_DEFAULTS = {"br": 11, "bz2": 9, "gz": 9, "snappy": 0, "zstd": 3}


@dataclass(frozen=True, kw_only=True, slots=True)
class Compression:
    """A way to compress a shard. ending: of its file behind ``.mds.``."""

    ending: str
    level: int

    def compress(self, data: bytes) -> bytes:
        """The compressed bytes. MissingExtraError without the package."""
        if self.ending == "gz":
            return gzip.compress(data, self.level, mtime=0)
        if self.ending == "bz2":
            return bz2.compress(data, self.level)
        library = _library(self.ending)
        if self.ending == "snappy":
            return bytes(library.compress_raw(data))
        return bytes(library.compress(data, self.level))


def find_compression(name: str) -> Compression:
    """The compression of a name with or without a level. SettingsError for another, or another level."""
    ending, colon, digits = name.partition(":")
    levels = _LEVELS.get(ending)
    if levels is None:
        raise SettingsError(f"unknown compression {name!r}, expected one of {', '.join(_LEVELS)}")
    if colon and not (digits.isdecimal() and int(digits) in levels):
        known = f"{levels[0]} to {levels[-1]}" if levels else "none"
        raise SettingsError(f"compression {name!r}: level {digits or 'missing'}, expected {known}")
    return Compression(ending=ending, level=int(digits) if colon else _DEFAULTS[ending])


def decompress(data: bytes, ending: str, name: str) -> bytes:
    """The bytes of a shard of that ending. ShardError, which calls it ``name``, where they are damaged."""
    try:
        if ending == "gz":
            return gzip.decompress(data)
        if ending == "bz2":
            return bz2.decompress(data)
        library = _library(ending)
        return bytes(library.decompress_raw(data) if ending == "snappy" else library.decompress(data))
    except MissingExtraError:
        raise
    except Exception as error:  # each library has errors of its own
        raise ShardError(f"{name}: cannot be decompressed: {error}; it is damaged or truncated") from None


def _library(ending: str) -> Any:
    try:
        import cramjam
    except ModuleNotFoundError:
        raise MissingExtraError(f"{ending} shards need the package cramjam: {install_extra('mds')}") from None
    return {"zstd": cramjam.zstd, "br": cramjam.brotli, "snappy": cramjam.snappy}[ending]
