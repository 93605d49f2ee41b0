"""Compress whole shards with zstd, gz, bz2, br or snappy. A name such as ``zstd:9`` includes the level.

The compressed bytes depend on the version of the compression library, but not on the time or the machine,
because the time that gzip would store is set to 0.
"""

import bz2
import gzip
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from bertdata.errors import MissingExtraError, SettingsError, ShardError, install_extra
from bertdata.shards.mds.names import INDEX_NAME

_LEVELS = {"br": range(12), "bz2": range(1, 10), "gz": range(10), "snappy": range(0), "zstd": range(1, 23)}
_TOO_SMALL = ("failed to write whole buffer", "is smaller than required")
"""Parts of the error messages by which cramjam reports that the output buffer is too small."""
_FIRST_ROOM = 1 << 27
"""Size of the first output buffer in bytes, twice the usual size of a shard."""

_DEFAULTS = {"br": 11, "bz2": 9, "gz": 9, "snappy": 0, "zstd": 3}


@dataclass(frozen=True, kw_only=True, slots=True)
class Compression:
    """A compression method and its level.

    ending: last part of a compressed shard's file name, such as ``zstd``.
    """

    ending: str
    level: int

    def compress(self, data: bytes) -> bytes:
        """Return the compressed bytes.

        Raises MissingExtraError if the package for this method is not installed.
        """
        if self.ending == "gz":
            return gzip.compress(data, self.level, mtime=0)
        if self.ending == "bz2":
            return bz2.compress(data, self.level)
        library = _load_library(self.ending)
        if self.ending == "snappy":
            return bytes(library.compress_raw(data))
        return bytes(library.compress(data, self.level))


def find_compression(name: str) -> Compression:
    """Find a compression by its name, such as ``zstd``, or its name and level, such as ``zstd:9``.

    Raises SettingsError if the name or the level is unknown.
    """
    ending, colon, digits = name.partition(":")
    levels = _LEVELS.get(ending)
    if levels is None:
        raise SettingsError(f"unknown compression {name!r}, expected one of {', '.join(_LEVELS)}")
    if colon and not (digits.isdecimal() and int(digits) in levels):
        known = f"{levels[0]} to {levels[-1]}" if levels else "none"
        raise SettingsError(f"compression {name!r}: level {digits or 'missing'}, expected {known}")
    return Compression(ending=ending, level=int(digits) if colon else _DEFAULTS[ending])


def decompress(data: bytes, ending: str, name: str, most: int) -> bytes:
    """Return the decompressed bytes of a shard.

    Raises ShardError if the data is damaged, or larger than ``most`` bytes.

    A limit is needed because a few compressed bytes can expand to very many.

    name: the shard, for errors.
    """
    try:
        found = _decompress_up_to(data, ending, most)
    except MissingExtraError:
        raise
    except Exception as error:  # Each compression library raises other exceptions.
        raise ShardError(f"{name}: cannot be decompressed: {error}; it is damaged or truncated") from None
    if found is None:
        raise ShardError(
            f"{name}: holds more than {most} bytes when it is decompressed; it is damaged, or its "
            f"{INDEX_NAME}, which tells its size, is missing beside it"
        )
    return found


def _decompress_up_to(data: bytes, ending: str, most: int) -> bytes | None:
    """Return the decompressed bytes. Returns None if there are more than ``most``."""
    if ending in ("gz", "bz2"):
        opened: Any = gzip.GzipFile if ending == "gz" else bz2.BZ2File
        with opened(BytesIO(data)) if ending == "bz2" else opened(fileobj=BytesIO(data)) as file:
            found: bytes = file.read(most + 1)
        return found if len(found) <= most else None
    library = _load_library(ending)
    into = library.decompress_raw_into if ending == "snappy" else library.decompress_into
    # cramjam has no limit for the output, but it can decompress into a buffer of fixed size. The buffer is
    # enlarged step by step up to the limit, so that small shards need little memory.
    size = _FIRST_ROOM
    while True:
        room = bytearray(min(size, most))
        try:
            return bytes(memoryview(room)[: into(data, room)])
        except Exception as error:
            if not any(words in str(error) for words in _TOO_SMALL):
                raise
        if size >= most:
            return None
        size *= 8


def _load_library(ending: str) -> Any:
    try:
        import cramjam
    except ModuleNotFoundError:
        raise MissingExtraError(f"{ending} shards need the package cramjam: {install_extra('mds')}") from None
    return {"zstd": cramjam.zstd, "br": cramjam.brotli, "snappy": cramjam.snappy}[ending]
