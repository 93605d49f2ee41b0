"""Page headers of Parquet files: how much memory a page claims before pyarrow unpacks it.

pyarrow takes the memory that the header of a page claims, up to 2 GiB, before it finds that the page is
damaged. So a file of some kilobytes could take gigabytes. Column chunks are therefore checked before pyarrow
reads them, if they are so small that reading them twice costs nothing.

A header is a struct in Thrift's compact protocol: fields with a byte for the type and the distance from the
number of the field before, then the value. Integers are varints (seven bits per byte) in zigzag form (the
lowest bit is the sign). See parquet.thrift and thrift-compact-protocol.md of Apache's projects.
"""

from collections.abc import Iterable, Iterator
from typing import IO, Any, NamedTuple

SMALL_CHUNK_BYTES = 1 << 20
"""Largest compressed size of a column chunk whose pages are checked."""

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_INTEGERS = (_I16, _I32, _I64)
_MOST_DEPTH = 8


class PageHeader(NamedTuple):
    """What the header of a page says.

    unpacked: bytes of the page after decompression.
    packed: bytes of the page in the file, without the header.
    length: bytes of the header.
    """

    unpacked: int
    packed: int
    length: int


def parse_page_header(data: bytes, start: int = 0) -> PageHeader | None:
    """Parse a page header that begins at a position. Return None if the bytes are no whole page header.

    >>> parse_page_header(bytes.fromhex("15 04 15 80 20 15 40 4c 15 02 15 00 00 00"))
    PageHeader(unpacked=2048, packed=32, length=14)
    """
    sizes = dict[int, int]()
    try:
        end = _skip_struct(data, start, sizes, 0)
        return PageHeader(sizes[2], sizes[3], end - start) if min(sizes[2], sizes[3]) >= 0 else None
    except (IndexError, KeyError, ValueError):
        return None


def find_excessive_page(file: IO[bytes], columns: Iterable[Any]) -> str:
    """Return words about the first page that claims more than its whole column chunk has, or "".

    Chunks above ``SMALL_CHUNK_BYTES`` are not checked. What is no page header is left to pyarrow.
    file: seekable Parquet file. Its position is changed.
    columns: pyarrow's metadata of the column chunks.
    """
    for column in columns:
        packed, unpacked = column.total_compressed_size, column.total_uncompressed_size
        offsets = (column.dictionary_page_offset, column.data_page_offset)
        start = min(offset for offset in offsets if offset is not None)
        if start < 0 or not 0 <= packed <= SMALL_CHUNK_BYTES:
            continue
        file.seek(start)
        for header in _list_page_headers(file.read(packed)):
            for claimed, most in ((header.packed, packed), (header.unpacked, unpacked)):
                if claimed > most:
                    return f"a page of {column.path_in_schema} claims {claimed} bytes, its column has {most}"
    return ""


def _list_page_headers(chunk: bytes) -> Iterator[PageHeader]:
    """Yield the page headers of a column chunk, up to the first bytes that are no page header."""
    place = 0
    while place < len(chunk) and (header := parse_page_header(chunk, place)):
        yield header
        place += header.length + header.packed


def _skip_struct(data: bytes, place: int, integers: dict[int, int], depth: int) -> int:
    """Return the position behind a struct that begins at ``place``, and note its integers by field number.

    Raises IndexError or ValueError if the bytes are no struct.
    """
    if depth > _MOST_DEPTH:
        raise ValueError("nested too deeply")
    number = 0
    while head := data[place]:
        place += 1
        if head >> 4:
            number += head >> 4
        else:
            number, place = _read_integer(data, place)
        kind = head & 15
        if kind in _INTEGERS:
            integers[number], place = _read_integer(data, place)
        elif kind not in (_TRUE, _FALSE):  # the value of these is in their type
            place = _skip_value(data, place, kind, depth)
    return place + 1


def _skip_value(data: bytes, place: int, kind: int, depth: int) -> int:
    """Return the position behind a value of this type."""
    if kind in _INTEGERS:
        return _read_integer(data, place)[1]
    if kind == _BINARY:
        size, place = _read_varint(data, place)
        return place + size
    if kind == _STRUCT:
        return _skip_struct(data, place, {}, depth + 1)
    if kind in (_TRUE, _FALSE, _BYTE):
        return place + 1
    if kind == _DOUBLE:
        return place + 8
    raise ValueError(f"type {kind}, which no page header has")


def _read_integer(data: bytes, place: int) -> tuple[int, int]:
    """Return an integer in zigzag form, and the position behind it."""
    value, place = _read_varint(data, place)
    return value >> 1 ^ -(value & 1), place


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of seven bits per byte, the lowest first, and the position behind it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError("a number of more than ten bytes")
