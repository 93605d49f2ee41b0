"""Digests of files, and whether a file is the one that a manifest's entry describes."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from bertdata.errors import MissingInputError
from bertdata.io import storage

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class FileEntry:
    """A file as a manifest lists it; the name is relative to the manifest's directory."""

    name: str
    bytes: int
    md5: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Misfit:
    """A difference between a file and its entry; status: ``missing``, ``wrong size`` or ``wrong md5``."""

    status: str
    found: str | None = None
    expected: str | None = None


def check_file(path: str, size: int, md5: str, *, size_only: bool = False) -> Misfit | None:
    """The first difference between the file and its entry; None where it fits."""
    try:
        found = storage.size(path)
        if found != size:
            return Misfit(status="wrong size", found=f"{found} bytes", expected=f"{size} bytes")
        if not size_only and (digest := file_md5(path)) != md5:
            return Misfit(status="wrong md5", found=digest, expected=md5)
    except MissingInputError:
        return Misfit(status="missing")
    return None


def fits(directory: str, entry: FileEntry) -> bool:
    """True if the directory's file of that name has the entry's bytes and md5."""
    return check_file(storage.join(directory, entry.name), entry.bytes, entry.md5) is None


def file_md5(path: str) -> str:
    """The md5 of a file's bytes."""
    digest = hashlib.md5(usedforsecurity=False)
    with storage.open_input(path) as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def md5_of(data: bytes) -> str:
    """The md5 of the bytes."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


class HashingSink:
    """Passes bytes on to a file, counting and hashing them."""

    def __init__(self, write: Callable[[bytes | memoryview], Any]) -> None:
        self._write = write
        self._digest = hashlib.md5(usedforsecurity=False)
        self.bytes = 0

    def write(self, data: bytes | memoryview) -> None:
        self._write(data)
        self._digest.update(data)
        self.bytes += len(data)

    @property
    def md5(self) -> str:
        return self._digest.hexdigest()

    def entry(self, name: str) -> FileEntry:
        """The entry of the file that was written."""
        return FileEntry(name=name, bytes=self.bytes, md5=self.md5)


def entries_json(entries: Iterable[FileEntry]) -> list[dict[str, Any]]:
    """The entries as a manifest holds them."""
    return [asdict(entry) for entry in entries]


def parse_entries(values: Iterable[dict[str, Any]]) -> tuple[FileEntry, ...]:
    """The entries of a manifest's JSON."""
    return tuple(FileEntry(**value) for value in values)
