"""Column chunks of Parquet files: where they are, their sizes, and whether their pages claim too much.

This is read here and not by pyarrow for two reasons. pyarrow ends the whole process when it is asked for the
description of a damaged column chunk. And it takes the memory that the header of a page claims, up to 2 GiB,
before it finds that the page is damaged, so that a file of some kilobytes could take gigabytes.

The numbers of fields and types are those of parquet.thrift, format version 2.11.
"""

from collections.abc import Iterable, Iterator
from typing import IO, Any, NamedTuple

from bertdata.io.thrift_compact import INTEGER, INTEGERS, TEXTS, Wanted, read_struct

BYTE_ARRAY = 6
"""Physical type of texts."""
DELTA_BYTE_ARRAY = 7
"""Encoding of texts as differences to the text before."""

CHECKED_BYTES = 1 << 16
"""Largest compressed size of a column chunk whose pages are checked. A larger chunk may unpack to 2 GiB, the
most that a page can claim, with the ratio of ``_MOST_RATIO``.
"""
_MOST_RATIO = 1 << 15
"""Largest ratio of unpacked to compressed bytes of a page, which zstd reaches with one repeated byte."""
_ALWAYS_ALLOWED = 1 << 24
_BROTLI = 4  # a codec whose ratio has no useful bound

_MAGIC = b"PAR1"
_ENDING_BYTES = 8  # size of the footer, then the magic bytes

_FACTS: Wanted = {
    1: INTEGER,
    2: INTEGERS,
    3: TEXTS,
    4: INTEGER,
    6: INTEGER,
    7: INTEGER,
    9: INTEGER,
    11: INTEGER,
}
_FOOTER: Wanted = {4: [{1: [{3: _FACTS}]}]}  # row groups, column chunks, and their descriptions
_PAGE_HEADER: Wanted = {2: INTEGER, 3: INTEGER}


class ColumnChunk(NamedTuple):
    """The values of a column in a row group.

    path: names of the column and of its parts, as in "text.list.element".
    physical_type: number of the physical type.
    encodings: numbers of the encodings of its pages.
    codec: number of the codec that compresses its pages.
    compressed: bytes of all pages in the file.
    uncompressed: bytes of all pages after decompression. Some programs write 0 instead.
    start: position of the first page in the file.
    dictionary: position of the dictionary page, or None if there is none.
    """

    path: str
    physical_type: int
    encodings: tuple[int, ...]
    codec: int
    compressed: int
    uncompressed: int
    start: int
    dictionary: int | None

    def is_of(self, names: Iterable[str]) -> bool:
        """Return True if the chunk belongs to one of these columns, or to a part of it."""
        return any(self.path == name or self.path.startswith(f"{name}.") for name in names)


class PageHeader(NamedTuple):
    """Sizes that the header of a page states.

    uncompressed: bytes of the page after decompression.
    compressed: bytes of the page in the file, without the header.
    length: bytes of the header.
    """

    uncompressed: int
    compressed: int
    length: int


def read_column_chunks(file: IO[bytes], names: Iterable[str]) -> list[tuple[ColumnChunk, ...]]:
    """Return for each row group of a Parquet file the column chunks of some columns.

    file: seekable file. Its position is changed.
    Raises ValueError if the footer is damaged.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - _ENDING_BYTES))
    ending = file.read(_ENDING_BYTES)
    footer = int.from_bytes(ending[:4], "little")
    if ending[4:] != _MAGIC or footer > size - _ENDING_BYTES:
        raise ValueError("no footer at the end of the file")
    file.seek(size - _ENDING_BYTES - footer)
    fields, _ = read_struct(file.read(footer), _FOOTER)
    wanted = list(names)
    try:
        # An encrypted column may have no description.
        described = ((column[3] for column in group[1] if 3 in column) for group in fields.get(4, ()))
        chunks = (map(_make_chunk, group) for group in described)
        return [tuple(chunk for chunk in found if chunk.is_of(wanted)) for found in chunks]
    except KeyError as error:
        raise ValueError(f"a column chunk is not described: field {error} is missing") from None


def parse_page_header(data: bytes, start: int = 0) -> PageHeader | None:
    """Parse a page header that begins at a position. Return None if the bytes are no whole page header.

    >>> parse_page_header(bytes.fromhex("15 04 15 80 20 15 40 4c 15 02 15 00 00 00"))
    PageHeader(uncompressed=2048, compressed=32, length=14)
    """
    try:
        fields, end = read_struct(data, _PAGE_HEADER, start)
    except ValueError:
        return None
    uncompressed, compressed = fields.get(2, -1), fields.get(3, -1)
    return None if min(uncompressed, compressed) < 0 else PageHeader(uncompressed, compressed, end - start)


def find_excessive_page(file: IO[bytes], chunks: Iterable[ColumnChunk]) -> str:
    """Return words about the first page that claims more bytes than it can have, or "" if there is none.

    Chunks above ``CHECKED_BYTES`` are not checked. What is no page header is left to pyarrow.
    file: seekable Parquet file. Its position is changed.
    """
    for chunk in chunks:
        if chunk.start < 0 or not 0 <= chunk.compressed <= CHECKED_BYTES:
            continue
        file.seek(chunk.start)
        for header in list_page_headers(file.read(chunk.compressed)):
            if header.compressed > chunk.compressed:
                return (
                    f"a page of {chunk.path} claims {header.compressed} bytes, its column chunk has "
                    f"{chunk.compressed}"
                )
            most = max(_ALWAYS_ALLOWED, _MOST_RATIO * header.compressed)
            if header.uncompressed > most and chunk.codec != _BROTLI:
                return (
                    f"a page of {chunk.path} claims {header.uncompressed} bytes in {header.compressed} "
                    "compressed ones"
                )
    return ""


def list_page_headers(pages: bytes) -> Iterator[PageHeader]:
    """Yield the page headers of a column chunk, up to the first bytes that are no page header."""
    place = 0
    while place < len(pages) and (header := parse_page_header(pages, place)):
        yield header
        place += header.length + header.compressed


def _make_chunk(facts: dict[int, Any]) -> ColumnChunk:
    """Return a column chunk from its description in the footer. KeyError if a field is missing."""
    dictionary = facts.get(11, 0)  # some programs write 0 if there is none
    return ColumnChunk(
        path=".".join(name.decode(errors="replace") for name in facts[3]),
        physical_type=facts[1],
        encodings=tuple(facts[2]),
        codec=facts[4],
        compressed=facts[7],
        uncompressed=facts[6],
        start=min(facts[9], dictionary) if dictionary > 0 else facts[9],
        dictionary=dictionary if dictionary > 0 else None,
    )
