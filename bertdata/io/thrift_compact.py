"""Decoder of structs in Thrift's compact protocol, in which Parquet files have their footer and page headers.

A struct is a list of fields, which ends with a zero byte. Each field begins with a byte: the upper half is
the distance from the number of the field before, and the lower half is the type of the value. Integers are
varints (seven bits per byte, the lowest first) in zigzag form (the lowest bit is the sign). See
thrift-compact-protocol.md of Apache Thrift.
"""

from typing import Any

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_INTEGERS = (_I16, _I32, _I64)
_MOST_DEPTH = 16

Fields = dict[int, Any]
"""Values of a struct by the numbers of its fields: bool, int, bytes, list, or dict for a struct."""


def read_struct(data: bytes, start: int = 0, depth: int = 0) -> tuple[Fields, int]:
    """Read the struct that begins at a position, and return its fields and the position behind it.

    Raises ValueError if the bytes are no struct, or a struct with a type that Parquet does not use.

    >>> read_struct(bytes.fromhex("15 04 15 80 20 28 02 68 69 00"))
    ({1: 2, 2: 2048, 4: b'hi'}, 10)
    """
    if depth > _MOST_DEPTH:
        raise ValueError(f"nested more than {_MOST_DEPTH} deep")
    found, number, place = Fields(), 0, start
    try:
        while head := data[place]:
            place += 1
            if head >> 4:
                number += head >> 4
            else:
                number, place = _read_integer(data, place)
            kind = head & 15
            if kind in (_TRUE, _FALSE):  # in a field, the type is the value
                found[number] = kind == _TRUE
            else:
                found[number], place = _read_value(data, place, kind, depth)
    except IndexError:
        raise ValueError("ends within a struct") from None
    return found, place + 1


def _read_value(data: bytes, place: int, kind: int, depth: int) -> tuple[Any, int]:
    """Return a value of this type, and the position behind it."""
    if kind in _INTEGERS:
        return _read_integer(data, place)
    if kind == _BINARY:
        size, place = _read_varint(data, place)
        return _take(data, place, size), place + size
    if kind == _STRUCT:
        return read_struct(data, place, depth + 1)
    if kind in (_LIST, _SET):
        return _read_list(data, place, depth + 1)
    if kind == _DOUBLE:
        return _take(data, place, 8), place + 8
    if kind in (_TRUE, _FALSE, _BYTE):
        return data[place], place + 1
    raise ValueError(f"type {kind}, which Parquet does not use")


def _read_list(data: bytes, place: int, depth: int) -> tuple[list[Any], int]:
    """Return the items of a list or a set, and the position behind it."""
    if depth > _MOST_DEPTH:
        raise ValueError(f"nested more than {_MOST_DEPTH} deep")
    head = data[place]
    size, place = (head >> 4, place + 1) if head >> 4 < 15 else _read_varint(data, place + 1)
    if size > len(data) - place:  # each item has a byte at least
        raise ValueError(f"a list of {size} items in {len(data) - place} bytes")
    found = []
    for _ in range(size):
        item, place = _read_value(data, place, head & 15, depth)
        found.append(item)
    return found, place


def _take(data: bytes, place: int, size: int) -> bytes:
    """Return ``size`` bytes from a position. Raises ValueError if there are fewer."""
    if size > len(data) - place:
        raise ValueError(f"{size} bytes of a text in {len(data) - place}")
    return data[place : place + size]


def _read_integer(data: bytes, place: int) -> tuple[int, int]:
    """Return an integer in zigzag form, and the position behind it."""
    value, place = _read_varint(data, place)
    return value >> 1 ^ -(value & 1), place


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of seven bits per byte, the lowest first, and the position behind it."""
    byte = data[place]
    if byte < 0x80:
        return byte, place + 1
    value, shift = byte & 0x7F, 7
    while shift < 70:
        place += 1
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place + 1
        shift += 7
    raise ValueError("a number of more than ten bytes")
