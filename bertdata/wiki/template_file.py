r"""The template file, which contains all template definitions of a dump.

It is never changed after it is written, and every worker maps it into memory. Its parts are, with all numbers
little-endian:

- the bytes ``BDWIKI2\n``
- the number of templates and the number of redirects, 64 bits each
- for each definition a record of five 64-bit numbers: offset and size of its title, offset and size of its
  text, and its index in the dump. Templates come before redirects, and both are sorted by title and index.
- all titles and texts. The offsets are counted from here.

If a title is defined several times, all of its definitions are in the file.
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
    """Object that collects template definitions in the order of the dump, and writes the template file.

    If the definitions are large, they are collected in a temporary file.
    """

    def __init__(self) -> None:
        self._data = SpooledFile(_IN_MEMORY_BYTES)
        self._bytes = self._count = 0
        self._numbers = {TEMPLATE: 0, REDIRECT: 0}
        # the definitions that were collected, by kind and title
        self._records: dict[str, dict[bytes, list[bytes]]] = {TEMPLATE: {}, REDIRECT: {}}

    def add(self, kind: str, title: bytes, text: bytes) -> None:
        """Add the next template definition of the dump.

        kind: TEMPLATE for a template, or REDIRECT for a redirect to another template.
        """
        at, size = self._bytes, len(title)
        record = _RECORD.pack(at, size, at + size, len(text), self._count)
        self._records[kind].setdefault(title, []).append(record)
        data = title + text
        self._data.write(data)
        self._bytes += len(data)
        self._count += 1
        self._numbers[kind] += 1

    def write(self, file: BinaryIO) -> None:
        """Write all definitions that were collected to a template file.

        This must be fast, because all workers wait for the file.
        """
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
    """Yield the kind, the title and the text of each definition in a template file, in the order of the dump.

    data: content of the template file.
    """
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
    """Map a file into memory, and return the mapping.

    For an empty file, the result is an empty bytes object.
    """
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
