"""Decoder of structs in Thrift's compact protocol, in which Parquet files have their footer and page headers.

A struct is a list of fields, which ends with a zero byte. Each field begins with a byte: the upper half is
the distance from the number of the field before, and the lower half is the type of the value. Integers are
varints (seven bits per byte, the lowest first) in zigzag form (the lowest bit is the sign). See
thrift-compact-protocol.md of Apache Thrift.
"""

from collections.abc import Mapping
from typing import Any

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_MOST_DEPTH = 16

INTEGER, TEXT, INTEGERS, TEXTS = "integer", "text", "integers", "texts"
"""Kinds of values. Integers are int, texts are bytes, and the last two are lists of them."""

Wanted = Mapping[int, Any]
"""For the numbers of some fields of a struct the kind of their value. For a struct, the kind is a mapping
like this, and for a list of structs, it is a list with such a mapping.
"""


def read_struct(data: bytes, wanted: Wanted, start: int = 0) -> tuple[dict[int, Any], int]:
    """Read some fields of the struct that begins at a position. All other fields are skipped.

    Return the values of these fields, as far as they are there, and the position behind the struct.

    Raises ValueError if the bytes are no struct, if a wanted field has another kind of value, or for a type
    that Parquet does not use.

    >>> read_struct(bytes.fromhex("15 04 15 80 20 28 02 68 69 00"), {2: INTEGER, 4: TEXT})
    ({2: 2048, 4: b'hi'}, 10)
    """
    try:
        return _read_struct(data, wanted, start, 0)
    except IndexError:
        raise ValueError("ends within a struct") from None


def _read_struct(data: bytes, wanted: Wanted, place: int, depth: int) -> tuple[dict[int, Any], int]:
    """Do the work of ``read_struct``. IndexError if the data end within the struct."""
    if depth > _MOST_DEPTH:
        raise ValueError(f"nested more than {_MOST_DEPTH} deep")
    found, number = dict[int, Any](), 0
    while head := data[place]:
        place += 1
        if head >> 4:
            number += head >> 4
        else:
            number, place = _read_integer(data, place)
        if number in wanted:
            found[number], place = _read_value(data, wanted[number], place, head & 15, depth + 1)
        elif head & 15 not in (_TRUE, _FALSE):  # in a field, these types are the value
            place = _skip_value(data, place, head & 15, depth + 1)
    return found, place + 1


def _read_value(data: bytes, kind: Any, place: int, found: int, depth: int) -> tuple[Any, int]:
    """Return a value of a kind, and the position behind it. ValueError if its type ``found`` is another."""
    if kind == INTEGER and found in (_I16, _I32, _I64):
        return _read_integer(data, place)
    if kind == TEXT and found == _BINARY:
        size, place = _read_varint(data, place)
        _check_room(data, place, size)
        return data[place : place + size], place + size
    if isinstance(kind, Mapping) and found == _STRUCT:
        return _read_struct(data, kind, place, depth)
    if found == _LIST and (isinstance(kind, list) or kind in (INTEGERS, TEXTS)):
        size, item, place = _read_list_head(data, place)
        of_items = kind[0] if isinstance(kind, list) else INTEGER if kind == INTEGERS else TEXT
        values = []
        for _ in range(size):
            value, place = _read_value(data, of_items, place, item, depth + 1)
            values.append(value)
        return values, place
    raise ValueError(f"a value of type {found} in place of {kind if isinstance(kind, str) else 'a struct'}")


def _skip_value(data: bytes, place: int, kind: int, depth: int) -> int:
    """Return the position behind a value of this type."""
    if kind in (_I16, _I32, _I64):
        while data[place] >= 0x80:
            place += 1
        return place + 1
    if kind == _BINARY:
        size, place = _read_varint(data, place)
        _check_room(data, place, size)
        return place + size
    if kind == _STRUCT:
        return _read_struct(data, {}, place, depth)[1]
    if kind in (_LIST, _SET):
        if depth > _MOST_DEPTH:
            raise ValueError(f"nested more than {_MOST_DEPTH} deep")
        size, item, place = _read_list_head(data, place)
        for _ in range(size):
            place = _skip_value(data, place, item, depth + 1)
        return place
    if kind in (_TRUE, _FALSE, _BYTE, _DOUBLE):
        size = 8 if kind == _DOUBLE else 1
        _check_room(data, place, size)
        return place + size
    raise ValueError(f"type {kind}, which Parquet does not use")


def _read_list_head(data: bytes, place: int) -> tuple[int, int, int]:
    """Return the number of items of a list, their type, and the position of the first."""
    head = data[place]
    size, place = (head >> 4, place + 1) if head >> 4 < 15 else _read_varint(data, place + 1)
    _check_room(data, place, size)  # each item has a byte at least
    return size, head & 15, place


def _check_room(data: bytes, place: int, size: int) -> None:
    """Raise ValueError unless there are ``size`` bytes from a position on."""
    if size > len(data) - place:
        raise ValueError(f"a value of {size} bytes in {len(data) - place}")


def _read_integer(data: bytes, place: int) -> tuple[int, int]:
    """Return an integer in zigzag form, and the position behind it."""
    value, place = _read_varint(data, place)
    return value >> 1 ^ -(value & 1), place


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of seven bits per byte, the lowest first, and the position behind it.

    Bits beyond 64 are dropped, as by Thrift's own decoder.
    """
    byte = data[place]
    if byte < 0x80:
        return byte, place + 1
    value, shift = byte & 0x7F, 7
    while shift < 70:
        place += 1
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place + 1
        shift += 7
    raise ValueError("a number of more than ten bytes")
