r"""The template file: all definitions of a dump, immutable, mapped into memory by every worker.

Little-endian: the magic ``BDWIKI2\n``; the numbers of templates and of redirects, 64 bits each; a record of
five 64-bit numbers for each definition (offset and size of title and text, and the definition's place in
the dump), templates first, each kind sorted by title and place; then titles and texts, from whose begin
the offsets count. Definitions of equal titles are all there.
"""

import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import chain
from typing import BinaryIO

from bertdata.io.spooled_file import SpooledFile

MAGIC = b"BDWIKI2\n"
TEMPLATE, REDIRECT = "template", "redirect"
_COUNTS = struct.Struct("<QQ")
_RECORD = struct.Struct("<5Q")
_HEAD_BYTES = len(MAGIC) + _COUNTS.size
_IN_MEMORY_BYTES = 64 << 20
_PIECE_BYTES = 1 << 20


class TemplateFileWriter(AbstractContextManager["TemplateFileWriter"]):
    """Takes definitions in the dump's order. ``write`` makes the file. Large texts wait on disk."""

    def __init__(self) -> None:
        self._data = SpooledFile(_IN_MEMORY_BYTES)
        self._bytes = self._count = 0
        self._numbers = {TEMPLATE: 0, REDIRECT: 0}
        self._records: dict[str, dict[bytes, list[bytes]]] = {TEMPLATE: {}, REDIRECT: {}}  # by title

    def add(self, kind: str, title: bytes, text: bytes) -> None:
        """Take the next definition."""
        at, size = self._bytes, len(title)
        record = _RECORD.pack(at, size, at + size, len(text), self._count)
        self._records[kind].setdefault(title, []).append(record)
        data = title + text
        self._data.write(data)
        self._bytes += len(data)
        self._count += 1
        self._numbers[kind] += 1

    def write(self, file: BinaryIO) -> None:
        """Write the template file. Quick, because the workers wait for it."""
        file.write(MAGIC + _COUNTS.pack(self._numbers[TEMPLATE], self._numbers[REDIRECT]))
        for kind in (TEMPLATE, REDIRECT):
            file.write(
                b"".join(chain.from_iterable(records for _, records in sorted(self._records[kind].items())))
            )
        data = self._data.rewind()
        while piece := data.read(_PIECE_BYTES):
            file.write(piece)

    def __exit__(self, *failure: object) -> None:
        self._data.close()


def read_definitions(data: memoryview) -> Iterator[tuple[str, bytes, bytes]]:
    """Kind, title and text of each definition of a template file, in the dump's order."""
    templates, redirects = _COUNTS.unpack_from(data, len(MAGIC))
    kinds = [TEMPLATE] * templates + [REDIRECT] * redirects
    records = _RECORD.iter_unpack(data[_HEAD_BYTES : _HEAD_BYTES + _RECORD.size * len(kinds)])
    found = sorted(zip(records, kinds, strict=True), key=lambda pair: pair[0][4])
    texts = data[_HEAD_BYTES + _RECORD.size * len(kinds) :]
    for (title_at, title_bytes, text_at, text_bytes, _), kind in found:
        yield (
            kind,
            bytes(texts[title_at : title_at + title_bytes]),
            bytes(texts[text_at : text_at + text_bytes]),
        )


def map_file(path: str) -> mmap.mmap | bytes:
    """The file's bytes, mapped into memory."""
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
