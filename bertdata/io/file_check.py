"""MD5s of files, and the check of a file against its entry in a manifest."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from bertdata.errors import ManifestError, MissingInputError
from bertdata.io import storage
from bertdata.io.digests import STREAMS_AT_ONCE, make_md5_streams

_BLOCK_BYTES = 1 << 20
_SMALL_BLOCK_BYTES = 1 << 17


class FileEntry(NamedTuple):
    """A file as listed in a manifest. The name is relative to the manifest's directory."""

    name: str
    bytes: int
    md5: str


class Misfit(NamedTuple):
    """The difference between a file and its manifest entry.

    status: ``missing``, ``wrong size`` or ``wrong md5``.
    """

    status: str
    found: str | None = None
    expected: str | None = None


def check_file(
    path: str, size: int, md5: str, *, size_only: bool = False, also: Callable[[bytes], Any] | None = None
) -> Misfit | None:
    """Compare a file with its expected size and md5. Returns the first difference, or None if there is none.

    size: expected size in bytes.
    md5: expected md5 in hexadecimal.
    size_only: compare only the size, so that the file need not be read.
    also: function to call with each block of the file as it is read, so that the file is read only once.
    """
    try:
        found = storage.read_size(path)
        if found != size:
            return Misfit(status="wrong size", found=f"{found} bytes", expected=f"{size} bytes")
        if not size_only and (digest := compute_file_md5(path, also)) != md5:
            return Misfit(status="wrong md5", found=digest, expected=md5)
    except MissingInputError:
        return Misfit(status="missing")
    return None


def matches_entry(directory: str, entry: FileEntry) -> bool:
    """Return True if the directory has a file with the name, size and md5 of this manifest entry."""
    return check_file(storage.join(directory, entry.name), entry.bytes, entry.md5) is None


def compute_file_md5(path: str, also: Callable[[bytes], Any] | None = None) -> str:
    """Return the hexadecimal md5 of a file.

    also: function that is called with each block of the file as it is read.
    """
    digest = hashlib.md5(usedforsecurity=False)
    with storage.open_input(path) as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            if also is not None:
                also(block)
    return digest.hexdigest()


def compute_file_md5s(paths: Sequence[str], before_blocks: Callable[[], Any] | None = None) -> list[str]:
    """Return the hexadecimal md5 of each file, reading up to eight files at once.

    before_blocks: function that is called before a block of each of these files is read. An exception that it
        raises ends the reading.
    """
    found: list[str] = []
    for start in range(0, len(paths), STREAMS_AT_ONCE):
        found += _hash_side_by_side(paths[start : start + STREAMS_AT_ONCE], before_blocks or _do_nothing)
    return found


def _do_nothing() -> None:
    pass


def _hash_side_by_side(paths: Sequence[str], before_blocks: Callable[[], Any]) -> list[str]:
    """Return the md5s of at most eight files. The files are read in turn, a block of each.

    before_blocks: as in ``compute_file_md5s``.
    """
    digests = make_md5_streams(len(paths))
    buffers = [memoryview(bytearray(_SMALL_BLOCK_BYTES)) for _ in paths]
    with ExitStack() as stack:
        files: list[Any] = [stack.enter_context(storage.open_input(path)) for path in paths]
        before_blocks()
        while any(sizes := [file.readinto(buffer) for file, buffer in zip(files, buffers, strict=True)]):
            digests.update([buffer[:size] for buffer, size in zip(buffers, sizes, strict=True)])
            before_blocks()
    return [digest.hex() for digest in digests.digests()]


def compute_md5(data: bytes) -> str:
    """Return the hexadecimal md5 of the bytes."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


class HashingSink:
    """A writer that passes all bytes on to another function, and counts and hashes them on the way.

    write: the function that gets the bytes.
    """

    def __init__(self, write: Callable[[bytes | memoryview], Any]) -> None:
        self._write = write
        self._digest = hashlib.md5(usedforsecurity=False)
        self.bytes = 0

    def write(self, data: bytes | memoryview) -> None:
        """Pass the bytes on to the function ``write`` of the constructor, and count and hash them."""
        self._write(data)
        self._digest.update(data)
        self.bytes += len(data)

    @property
    def md5(self) -> str:
        return self._digest.hexdigest()

    def entry(self, name: str) -> FileEntry:
        """Return a manifest entry with this name, and the size and md5 of the bytes written so far."""
        return FileEntry(name=name, bytes=self.bytes, md5=self.md5)


def dump_entries(entries: Iterable[FileEntry]) -> list[dict[str, Any]]:
    """Return file entries (name, size and md5) as JSON objects for a manifest."""
    return [entry._asdict() for entry in entries]


def parse_entries(values: Iterable[dict[str, Any]], where: str) -> tuple[FileEntry, ...]:
    """Return the file entries (name, size and md5) in a manifest's JSON.

    Raises ManifestError if a name leads outside the directory.
    """
    entries = tuple(FileEntry(**value) for value in values)
    check_safe_names((entry.name for entry in entries), where)
    return entries


def is_inside(name: str) -> bool:
    """Return True if the name stays inside its directory: it is relative, has no ``..`` and is not a URL."""
    parts = name.split("/")
    return "://" not in name and "\0" not in name and not {"", ".", ".."} & set(parts)


def check_safe_names(names: Iterable[str], where: str) -> None:
    """Raise ManifestError if a name leads outside the directory."""
    for name in names:
        if not is_inside(name):
            raise ManifestError(f"{where}: lists {name!r}, expected a file in its own directory")
