"""Reads the text of a dump: opens its file, computes the md5, decompresses it, and converts line ends."""

import hashlib
import io
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, BinaryIO, cast

from bertdata._native import Engine
from bertdata.errors import InputError, MissingInputError, StorageError
from bertdata.io import storage
from bertdata.wiki.dump.bzip2 import read_bzip2
from bertdata.wiki.dump.gzip_text import read_gzip
from bertdata.wiki.worker_pool import WorkerPool

_READ_BYTES = 1 << 20
_BZIP2, _GZIP = b"BZh", b"\x1f\x8b"
_UNREADABLE = {b"7z\xbc\xaf": "7-Zip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zX": "xz", b"PK\x03\x04": "zip"}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def open_file(path: str) -> AbstractContextManager[BinaryIO]:
    """Open the file of a dump, which is local or remote. Errors contain the path of the file."""
    return _open_remote(path) if storage.is_remote(path) else _open_local(path)


def _open_remote(path: str) -> AbstractContextManager[BinaryIO]:
    """Open a remote file. Raises MissingInputError for a directory."""
    if storage.is_directory(path):
        raise MissingInputError(f"{path}: is a directory, expected a dump (.xml or .xml.bz2)")
    return storage.open_input(path)


@contextmanager
def _open_local(path: str) -> Iterator[BinaryIO]:
    """Open a local file, and close it after the block of code."""
    try:
        file = io.FileIO(path)
    except FileNotFoundError:
        raise MissingInputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise MissingInputError(f"{path}: is a directory, expected a dump (.xml or .xml.bz2)") from None
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error
    with file:
        yield cast(BinaryIO, io.BufferedReader(_NamedInput(file, path)))


class _NamedInput(io.RawIOBase):
    """File object that turns errors while reading into a StorageError, which contains the path of the
    file.
    """

    def __init__(self, file: io.FileIO, path: str) -> None:
        self._file = file
        self._path = path

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        try:
            return self._file.readinto(buffer) or 0
        except OSError as error:
            raise StorageError(f"{self._path}: {error.strerror or error}") from error


class HashedFile:
    """File object that computes the md5 of a file while it is read.

    If bytes are read a second time, they are not counted twice.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.md5(usedforsecurity=False)
        self._position = self._hashed = 0

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes of the file, and include them in the md5."""
        data = self._file.read(size)
        start, self._position = self._position, self._position + len(data)
        if self._position > self._hashed:
            self._digest.update(memoryview(data)[self._hashed - start :])
            self._hashed = self._position
        return data

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int) -> int:
        """Go back to an offset before the current position.

        Going forward is not possible, because the bytes in between would be missing in the md5.
        """
        assert offset <= self._hashed
        self._position = self._file.seek(offset)
        return self._position

    def md5(self) -> str:
        """Read the rest of the file, and return the md5 of the whole file."""
        while self.read(_READ_BYTES):
            pass
        return self._digest.hexdigest()


def is_compressed(file: HashedFile) -> bool:
    """Return True if the file is compressed with bzip2 or gzip, according to its first bytes."""
    first = file.read(3)
    file.seek(0)
    return first.startswith((_BZIP2, _GZIP))


def read_texts(
    file: HashedFile, name: str, pool: WorkerPool, engine: Engine | None = None
) -> Iterator[tuple[bytes, int]]:
    """Read and decompress a dump. Yields each piece of text with the number of bytes of the file read so far.

    name: path of the dump, for error messages.
    pool: workers that decompress the dump.

    Raises InputError for compressed formats other than bzip2 and gzip, and for damaged data.
    """
    first = file.read(4)
    file.seek(0)
    if first in _UNREADABLE:
        raise InputError(
            f"{name}: is compressed with {_UNREADABLE[first]}, expected .xml, .xml.bz2 or .xml.gz"
        )
    if first.startswith(_UTF16):
        raise InputError(f"{name}: is UTF-16, expected a MediaWiki dump in UTF-8")
    if first.startswith(_BZIP2):
        yield from read_bzip2(cast(BinaryIO, file), name, pool, engine)
    elif first.startswith(_GZIP):
        yield from read_gzip(cast(BinaryIO, file), name)
    else:
        while data := file.read(_READ_BYTES):
            yield data, file.tell()


def normalise_newlines(texts: Iterator[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
    r"""Replace every ``\r\n`` and ``\r`` by ``\n``, as wikiextractor does when it reads a dump."""
    # A "\r" at the end of a piece is kept for the next piece, which may start with the "\n" that belongs to
    # it.
    carry = b""
    for text, position in texts:
        if carry or b"\r" in text:
            text = carry + text
            carry = text[-1:] if text.endswith(b"\r") else b""
            text = text[: len(text) - len(carry)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        yield text, position
    if carry:
        yield b"\n", position
