"""Column chunks of Parquet files: where they lie, their sizes, and whether their pages claim more.

This is read here and not by pyarrow for two reasons. pyarrow ends the whole process when it is asked for the
description of a damaged column chunk. And it takes the memory that the header of a page claims, up to 2 GiB,
before it finds that the page is damaged, so that a file of some kilobytes could take gigabytes. Column chunks
are therefore checked before pyarrow reads them, if they are so small that reading them twice costs nothing.

The numbers of fields and types are those of parquet.thrift, format version 2.11.
"""

from collections.abc import Iterable, Iterator
from typing import IO, Any, NamedTuple

from bertdata.io.thrift_compact import read_struct

SMALL_CHUNK_BYTES = 1 << 20
"""Largest compressed size of a column chunk whose pages are checked."""

BYTE_ARRAY = 6
"""Physical type of texts."""
DELTA_BYTE_ARRAY = 7
"""Encoding of texts as differences to the text before."""

_MAGIC = b"PAR1"
_ENDING_BYTES = 8  # size of the footer, then the magic bytes


class ColumnChunk(NamedTuple):
    """The values of a column in a row group.

    path: names of the column and of its parts, as in "text.list.element".
    physical_type: number of the physical type.
    encodings: numbers of the encodings of its pages.
    packed: bytes of all pages in the file.
    unpacked: bytes of all pages after decompression.
    start: position of the first page in the file.
    dictionary: position of the dictionary page, or None if there is none.
    """

    path: str
    physical_type: int
    encodings: tuple[int, ...]
    packed: int
    unpacked: int
    start: int
    dictionary: int | None

    def is_of(self, names: Iterable[str]) -> bool:
        """Return True if the chunk belongs to one of these columns, or to a part of it."""
        return any(self.path == name or self.path.startswith(f"{name}.") for name in names)


class PageHeader(NamedTuple):
    """What the header of a page says.

    unpacked: bytes of the page after decompression.
    packed: bytes of the page in the file, without the header.
    length: bytes of the header.
    """

    unpacked: int
    packed: int
    length: int


def read_column_chunks(file: IO[bytes]) -> list[tuple[ColumnChunk, ...]]:
    """Return the column chunks of each row group of a seekable Parquet file, whose position is changed.

    Raises ValueError if the footer is damaged.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - _ENDING_BYTES))
    ending = file.read(_ENDING_BYTES)
    footer = int.from_bytes(ending[:4], "little")
    if ending[4:] != _MAGIC or footer > size - _ENDING_BYTES:
        raise ValueError("no footer at the end of the file")
    file.seek(size - _ENDING_BYTES - footer)
    fields, _ = read_struct(file.read(footer))
    try:
        return [tuple(map(_make_chunk, group[1])) for group in fields[4]]
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError):
        raise ValueError("a column chunk is not described in the footer") from None


def parse_page_header(data: bytes, start: int = 0) -> PageHeader | None:
    """Parse a page header that begins at a position. Return None if the bytes are no whole page header.

    >>> parse_page_header(bytes.fromhex("15 04 15 80 20 15 40 4c 15 02 15 00 00 00"))
    PageHeader(unpacked=2048, packed=32, length=14)
    """
    try:
        fields, end = read_struct(data, start)
    except ValueError:
        return None
    unpacked, packed = fields.get(2), fields.get(3)
    if type(unpacked) is not int or type(packed) is not int or min(unpacked, packed) < 0:
        return None
    return PageHeader(unpacked, packed, end - start)


def find_excessive_page(file: IO[bytes], chunks: Iterable[ColumnChunk]) -> str:
    """Return words about the first page that claims more than its whole column chunk has, or "".

    Chunks above ``SMALL_CHUNK_BYTES`` are not checked. What is no page header is left to pyarrow.
    file: seekable Parquet file. Its position is changed.
    """
    for chunk in chunks:
        if chunk.start < 0 or not 0 <= chunk.packed <= SMALL_CHUNK_BYTES:
            continue
        file.seek(chunk.start)
        for header in list_page_headers(file.read(chunk.packed)):
            for claimed, most in ((header.packed, chunk.packed), (header.unpacked, chunk.unpacked)):
                if claimed > most:
                    return f"a page of {chunk.path} claims {claimed} bytes, its column has {most}"
    return ""


def list_page_headers(pages: bytes) -> Iterator[PageHeader]:
    """Yield the page headers of a column chunk, up to the first bytes that are no page header."""
    place = 0
    while place < len(pages) and (header := parse_page_header(pages, place)):
        yield header
        place += header.length + header.packed


def _make_chunk(fields: dict[int, Any]) -> ColumnChunk:
    """Return a column chunk from its entry in a row group. KeyError or TypeError for a damaged entry."""
    facts = fields[3]
    dictionary = facts.get(11)
    starts = [place for place in (dictionary, facts[9]) if place is not None]
    return ColumnChunk(
        path=".".join(name.decode() for name in facts[3]),
        physical_type=facts[1],
        encodings=tuple(facts[2]),
        packed=_get_integer(facts, 7),
        unpacked=_get_integer(facts, 6),
        start=min(starts),
        dictionary=dictionary,
    )


def _get_integer(fields: dict[int, Any], number: int) -> int:
    """Return a field that is an integer. Raises KeyError or TypeError if it is none."""
    value = fields[number]
    if type(value) is not int:
        raise TypeError
    return value
