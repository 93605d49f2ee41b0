"""A MediaWiki XML dump as a stream of blocks of whole pages, plain or compressed.

Nothing is kept but the block in hand, so memory does not grow with the dump. Damage is an error that
says where, or a page that is skipped by name; the end of the dump must be there.
"""

import gzip
import hashlib
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from xml.parsers import expat
from xml.sax.saxutils import escape

from bertdata.errors import InputError, MissingInputError, StorageError
from bertdata.io import storage
from bertdata.io.process_pool import ProcessPool
from bertdata.wiki.bzip2 import read_bzip2
from bertdata.wiki.pages import CUT_OFF, TOO_LARGE, Skipped, page_name

BLOCK_BYTES = 256 << 10
"""Size of a block of pages: some 50 ms of extraction, so that workers finish together."""

_READ_BYTES = 1 << 20
_HEAD_BYTES = 16 << 20
_CLOSE = b"</page>"
_PAGE_START = re.compile(rb"<page[\s>]")
_UNREADABLE = {b"7z\xbc\xaf": "7-Zip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zX": "xz", b"PK\x03\x04": "zip"}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteInfo:
    """Facts of a dump's head that rendering needs, characters such as ``&`` escaped as in the dump."""

    url_base: str
    namespaces: frozenset[str]
    template_namespace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageBlock:
    """Whole pages, from an opening tag to a closing one, or one page that cannot be had whole.

    ``position`` is the offset in the dump's file that reading has reached.
    """

    data: bytes
    position: int
    skipped: Skipped | None = None


class Dump:
    """One opened dump: ``site`` from its head, then ``blocks()`` once, then ``md5()``."""

    def __init__(self, file: BinaryIO, name: str, pool: ProcessPool, *, max_page_bytes: int) -> None:
        self._name = name
        self._max_page_bytes = max_page_bytes
        self._file = _HashedFile(file)
        self._texts = _universal_newlines(_read_texts(cast(BinaryIO, self._file), name, pool))
        self._position = 0
        head = self._read_head()
        self.site = _parse_head(head, name)

    def _read_head(self) -> bytes:
        """Everything before the first page; what was read beyond it waits in ``_rest``."""
        self._rest = b""
        for text, position in self._texts:
            self._position = position
            self._rest += text
            if (page := _PAGE_START.search(self._rest)) is not None:
                head, self._rest = self._rest[: page.start()], self._rest[page.start() :]
                return head
            if len(self._rest) > _HEAD_BYTES:
                raise InputError(
                    f"{self._name}: no <page> in the first {_HEAD_BYTES >> 20} MiB, expected a MediaWiki dump"
                )
        head, end, tail = self._rest.partition(b"</mediawiki>")
        self._rest = end + tail
        return head

    def blocks(self) -> Iterator[PageBlock]:
        """Blocks of whole pages, in order; InputError where the dump ends before ``</mediawiki>``."""
        buffer, searched = self._rest, 0
        self._rest = b""
        while True:
            end = buffer.rfind(_CLOSE, searched)
            if end >= 0 and len(buffer) >= BLOCK_BYTES:
                yield from self._cut(buffer[: end + len(_CLOSE)])
                buffer, searched = buffer[end + len(_CLOSE) :], 0
            elif len(buffer) > self._max_page_bytes:
                yield PageBlock(
                    data=b"",
                    position=self._position,
                    skipped=Skipped(reason=TOO_LARGE, name=page_name(buffer)),
                )
                buffer, searched = self._pass_over(buffer), 0
            else:
                # One closing tag may lie across two reads; those before it were too early for a block.
                searched = max(0, len(buffer) - len(_CLOSE) + 1) if end < 0 else end
                read = next(self._texts, None)
                if read is None:
                    break
                self._position = read[1]
                buffer += read[0]
        end = buffer.rfind(_CLOSE)
        if end >= 0:
            yield from self._cut(buffer[: end + len(_CLOSE)])
        self._check_end(buffer[end + len(_CLOSE) if end >= 0 else 0 :])

    def md5(self) -> str:
        """The md5 of the whole file, which was computed while it was read; the rest of it is read now."""
        return self._file.md5()

    def _cut(self, data: bytes) -> Iterator[PageBlock]:
        """The data as blocks of about BLOCK_BYTES: one read may bring several."""
        start = 0
        while len(data) - start > 2 * BLOCK_BYTES and (end := data.find(_CLOSE, start + BLOCK_BYTES)) >= 0:
            yield PageBlock(data=data[start : end + len(_CLOSE)], position=self._position)
            start = end + len(_CLOSE)
        if start < len(data):
            yield PageBlock(data=data[start:], position=self._position)

    def _pass_over(self, buffer: bytes) -> bytes:
        """Read on to the next closing tag, forgetting the bytes before it; the bytes behind it."""
        while (end := buffer.find(_CLOSE)) < 0:
            read = next(self._texts, None)
            if read is None:
                break
            self._position = read[1]
            buffer = buffer[1 - len(_CLOSE) :] + read[0]
        else:
            return buffer[end + len(_CLOSE) :]
        return buffer

    def _check_end(self, tail: bytes) -> None:
        if (page := _PAGE_START.search(tail)) is not None:
            raise InputError(
                f"{self._name}: {CUT_OFF}: the dump ends inside the page {page_name(tail[page.start() :])}, "
                "expected </page> and </mediawiki>; download it again"
            )
        if b"</mediawiki>" not in tail:
            raise InputError(
                f"{self._name}: {CUT_OFF}: the dump ends without </mediawiki>; download it again"
            )


@contextmanager
def open_dump(path: str, pool: ProcessPool, *, max_page_bytes: int) -> Iterator[Dump]:
    """The dump of a path or a URL, its head read and checked."""
    with _open_remote(path) if storage.is_remote(path) else _open_local(Path(path)) as file:
        yield Dump(file, path, pool, max_page_bytes=max_page_bytes)


def _open_remote(path: str) -> AbstractContextManager[BinaryIO]:
    if storage.is_directory(path):
        raise MissingInputError(f"{path}: is a directory, expected a dump (.xml or .xml.bz2)")
    return storage.open_input(path)


@contextmanager
def _open_local(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        raise MissingInputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise MissingInputError(f"{path}: is a directory, expected a dump (.xml or .xml.bz2)") from None
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error
    with file:
        yield cast(BinaryIO, io.BufferedReader(_NamedInput(file, path), _READ_BYTES))


class _NamedInput(io.RawIOBase):
    """A file whose read errors name it."""

    def __init__(self, file: io.FileIO, path: Path) -> None:
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


class _HashedFile:
    """A file that is read from its beginning, each byte hashed when it is first read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.md5(usedforsecurity=False)
        self._position = self._hashed = 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        start, self._position = self._position, self._position + len(data)
        if self._position > self._hashed:
            self._digest.update(memoryview(data)[self._hashed - start :])
            self._hashed = self._position
        return data

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int) -> int:
        """Go back; bytes not yet read are not passed over, so that none stays out of the digest."""
        assert offset <= self._hashed
        self._position = self._file.seek(offset)
        return self._position

    def md5(self) -> str:
        while self.read(_READ_BYTES):
            pass
        return self._digest.hexdigest()


def _read_texts(file: BinaryIO, name: str, pool: ProcessPool) -> Iterator[tuple[bytes, int]]:
    """The dump's text in pieces, each with the offset in the file that it reaches to."""
    first = file.read(4)
    file.seek(0)
    if first in _UNREADABLE:
        raise InputError(
            f"{name}: is compressed with {_UNREADABLE[first]}, expected .xml, .xml.bz2 or .xml.gz"
        )
    if first.startswith(_UTF16):
        raise InputError(f"{name}: is UTF-16, expected a MediaWiki dump in UTF-8")
    if first.startswith(b"BZh"):
        yield from read_bzip2(file, name, pool)
    elif first.startswith(b"\x1f\x8b"):
        yield from _read_gzip(file, name)
    else:
        while data := file.read(_READ_BYTES):
            yield data, file.tell()


def _read_gzip(file: BinaryIO, name: str) -> Iterator[tuple[bytes, int]]:
    try:
        with gzip.open(file) as unpacked:
            while data := unpacked.read(_READ_BYTES):
                yield data, file.tell()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{name}: truncated or damaged gzip data ({error}); download it again") from None


def _universal_newlines(texts: Iterator[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
    r"""The texts with every ``\r\n`` and ``\r`` as ``\n``, as wikiextractor opens a dump."""
    carry = b""
    for text, position in texts:
        if carry or b"\r" in text:
            text = carry + text
            carry = text[-1:] if text.endswith(b"\r") else b""
            text = text[: len(text) - len(carry)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        yield text, position
    if carry:
        yield b"\n", position


def _parse_head(head: bytes, name: str) -> SiteInfo:
    """The site information; InputError for what is no MediaWiki XML, or declares a document type.

    The parser sees the head only, and refuses the declaration that every entity needs: neither an
    entity bomb nor an external entity is ever read.
    """
    parser = expat.ParserCreate()
    root: list[str] = []
    element: list[str] = []
    key = ""
    base, template_namespace = "", "Template"  # as MediaWiki names it where a head does not say
    namespaces = {"Template"}  # wikiextractor knows this one in every language

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal key
        if not root:
            root.append(tag)
        element[:] = []
        key = attributes.get("key", "")

    def end(tag: str) -> None:
        nonlocal base, template_namespace
        text = escape("".join(element))
        element[:] = []
        if tag == "base":
            base = text
        elif tag == "namespace":
            namespaces.add(text)
            if key == "10" and text:
                template_namespace = text

    def refuse(*_: object) -> None:
        raise InputError(
            f"{name}: declares a document type, which a MediaWiki dump never does; refused for safety"
        )

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = element.append
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(head, False)
    except expat.ExpatError as error:
        raise InputError(
            f"{name}: line {error.lineno}: {expat.ErrorString(error.code)}, expected a MediaWiki dump in XML"
        ) from None
    if root[:1] != ["mediawiki"]:
        raise InputError(
            f"{name}: the outermost element is {root[0] if root else 'missing'!r}, expected 'mediawiki'"
        )
    return SiteInfo(
        url_base=base[: base.rfind("/")],
        namespaces=frozenset(namespaces),
        template_namespace=template_namespace,
    )
