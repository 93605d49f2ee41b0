"""Read and write ``index.json``, which lists the shards of an MDS directory.

The form of a shard is its columns with their types, its compression and its hashes.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from bertdata.errors import ShardError
from bertdata.io.file_check import is_inside
from bertdata.io.json_text import parse_json_text
from bertdata.shards.mds.hashes import NAMES
from bertdata.shards.mds.types import ColumnType, find_type

VERSION = 2
LARGEST_SHARD = (1 << 32) - 1
"""The largest size of a shard in bytes, because offsets in a shard have 32 bits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardForm:
    """The form of a shard: its columns, compression and hashes.

    names: names of the columns, sorted.
    types: type of each column.
    compression: name of the compression, such as ``zstd:9``. None if there is none.
    hashes: names of the hashes that the index stores.
    size_limit: size in bytes at which MDSWriter begins a new shard. None writes a single shard.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    compression: str | None = None
    hashes: tuple[str, ...] = ()
    size_limit: int | None = None

    @classmethod
    def from_columns(cls, columns: Mapping[str, str], **others: Any) -> "ShardForm":
        """Make a form from columns in any order.

        columns: type of each column by name.
        others: further fields of the form.
        """
        names = tuple(sorted(columns))
        return cls(names=names, types=tuple(columns[name] for name in names), **others)

    def find_column_types(self) -> list[ColumnType]:
        """Return the columns' types. Raises ValueError for a type that is unknown or unsafe."""
        return [_find_column_type(name, kind) for name, kind in zip(self.names, self.types, strict=True)]

    def as_json(self) -> dict[str, Any]:
        return {
            "column_encodings": list(self.types),
            "column_names": list(self.names),
            "column_sizes": [kind.size for kind in self.find_column_types()],
            "compression": self.compression,
            "format": "mds",
            "hashes": list(self.hashes),
            "size_limit": self.size_limit,
            "version": VERSION,
        }

    def dump(self) -> bytes:
        """Return the form as JSON. A shard's file stores it before its samples."""
        return json.dumps(self.as_json(), sort_keys=True).encode()


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredFile:
    """Entry of an index about a file: its name, its size in bytes, and its hashes by the name of the hash."""

    basename: str
    bytes: int
    hashes: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexEntry:
    """Entry of an index about a shard.

    raw: the uncompressed file.
    zipped: the compressed file. None if the shard is not compressed.
    """

    form: ShardForm
    samples: int
    raw: StoredFile
    zipped: StoredFile | None = None

    @property
    def stored(self) -> StoredFile:
        """The file that was written, which is the compressed file if the shard is compressed."""
        return self.zipped or self.raw

    def as_json(self) -> dict[str, Any]:
        return {
            **self.form.as_json(),
            "raw_data": asdict(self.raw),
            "samples": self.samples,
            "zip_data": asdict(self.zipped) if self.zipped else None,
        }


def dump_index(entries: Iterable[IndexEntry]) -> bytes:
    """Return the contents of an ``index.json`` that lists these shards."""
    shards = [entry.as_json() for entry in entries]
    return json.dumps({"shards": shards, "version": VERSION}, sort_keys=True).encode()


@lru_cache(maxsize=4)
def parse_index(data: bytes, where: str) -> tuple[IndexEntry, ...]:
    """Parse an ``index.json`` and return the entries of its shards.

    Raises ShardError, which names a damaged value, or an unknown format, compression or column type.

    where: path of the index, for errors.
    """
    try:
        value = parse_json_text(data)
    except ValueError as error:
        raise ShardError(
            f"{where}: is no JSON: {error}; copy it again from where the shards are from"
        ) from None
    if not isinstance(value, dict) or not isinstance(value.get("shards"), list):
        raise ShardError(f"{where}: holds no list of shards, expected an index of MDS shards")
    _check_version(value, where)
    entries = tuple(
        _parse_entry(item, f"{where}: shard {number}") for number, item in enumerate(value["shards"])
    )
    for entry in entries:
        for file in (entry.raw, entry.zipped):
            if file is not None and not is_inside(file.basename):
                raise ShardError(f"{where}: lists {file.basename!r}, expected a file in its own directory")
    return entries


def parse_form(value: Any, where: str) -> ShardForm:
    """Parse the form of a shard (its columns, compression and hashes) from JSON.

    Raises ShardError, which names a damaged value or an unknown type.
    """
    _check_version(value, where)
    if (format := value.get("format")) != "mds":
        raise ShardError(f"{where}: format {format!r}, expected mds")
    names, types, hashes = (
        _read_texts(value, key, where) for key in ("column_names", "column_encodings", "hashes")
    )
    compression, limit = value.get("compression"), value.get("size_limit")
    if len(names) != len(types) or not isinstance(compression, str | None):
        raise ShardError(f"{where}: {len(names)} columns of {len(types)} types, compression {compression!r}")
    form = ShardForm(
        names=names,
        types=types,
        compression=compression,
        hashes=hashes,
        size_limit=limit if isinstance(limit, int) else None,
    )
    try:
        sizes = [kind.size for kind in form.find_column_types()]
    except ValueError as error:
        raise ShardError(f"{where}: {error}") from None
    if value.get("column_sizes") != sizes:
        raise ShardError(f"{where}: column_sizes {value.get('column_sizes')}, expected {sizes}")
    return form


def _find_column_type(name: str, kind: str) -> ColumnType:
    try:
        return find_type(kind)
    except ValueError as error:
        raise ValueError(f"column {name}: {error}") from None


def _check_version(value: Any, where: str) -> None:
    version = value.get("version") if isinstance(value, dict) else None
    if version != VERSION:
        raise ShardError(f"{where}: version {version}, expected {VERSION}")


def _read_texts(value: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    found = value.get(key)
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise ShardError(f"{where}: {key} is {_shorten_repr(found)}, expected a list of texts")
    return tuple(found)


def _parse_entry(value: Any, where: str) -> IndexEntry:
    form, samples = parse_form(value, where), value.get("samples")
    if not isinstance(samples, int) or samples < 0:
        raise ShardError(f"{where}: samples is {_shorten_repr(samples)}, expected 0 or more")
    zipped = None if value.get("zip_data") is None else _parse_file(value["zip_data"], f"{where}: zip_data")
    return IndexEntry(
        form=form,
        samples=samples,
        raw=_parse_file(value.get("raw_data"), f"{where}: raw_data"),
        zipped=zipped,
    )


def _parse_file(value: Any, where: str) -> StoredFile:
    found = value if isinstance(value, dict) else {}
    name, size, hashes = (found.get(key) for key in ("basename", "bytes", "hashes"))
    if not (isinstance(name, str) and isinstance(size, int) and isinstance(hashes, dict)):
        raise ShardError(f"{where}: is {_shorten_repr(value)}, expected basename, bytes and hashes")
    unknown = [hash for hash in hashes if hash not in NAMES]
    if unknown:
        raise ShardError(f"{where}: unknown hash {unknown[0]!r}, expected {', '.join(NAMES)}")
    return StoredFile(basename=name, bytes=size, hashes=hashes)


def _shorten_repr(value: Any) -> str:
    return repr(value)[:60]


def find_entry(entries: Sequence[IndexEntry], basename: str) -> IndexEntry | None:
    """Return the entry of a file, which may be compressed. Returns None if the index does not list it."""
    for entry in entries:
        if basename in (entry.raw.basename, entry.stored.basename):
            return entry
    return None
