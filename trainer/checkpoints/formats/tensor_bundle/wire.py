"""The wire format of protocol buffers: varints, and fields by number, without their meaning."""

import struct
from collections.abc import Iterator
from typing import Any

from bertdata.shards.example_proto import varint

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}
_LONGEST_VARINT = 10

Value = int | bytes
"""The value of a field: a number (unsigned), or bytes."""


class WireError(ValueError):
    """Bytes that are no message of this format."""


def read_varint(data: bytes, start: int) -> tuple[int, int]:
    """(the number, the offset after it)."""
    value = 0
    for number, byte in enumerate(data[start : start + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, start + number + 1
    raise WireError("a number without an end")


def read_varints(data: bytes, start: int, count: int) -> tuple[list[int], int]:
    """(so many numbers, the offset after them)."""
    numbers = []
    for _ in range(count):
        number, start = read_varint(data, start)
        numbers.append(number)
    return numbers, start


def read_bytes(data: bytes, start: int, size: int) -> bytes:
    """So many bytes from the offset on."""
    found = data[start : start + size]
    if len(found) < size:
        raise WireError(f"ends after {len(found)} of {size} bytes")
    return found


def read_fields(message: Value) -> Iterator[tuple[int, Value]]:
    """(number, value) of each field of a message, in order."""
    data, place = _as(message, bytes), 0
    while place < len(data):
        key, place = read_varint(data, place)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, place = read_varint(data, place)
            yield number, value
            continue
        if kind == _BYTES:
            size, place = read_varint(data, place)
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise WireError(f"a field of kind {kind}")
        found = read_bytes(data, place, size)
        yield number, found if kind == _BYTES else int.from_bytes(found, "little")
        place += size


def read_message(message: Value, *kinds: type[int | bytes | str]) -> list[Any]:
    """The fields 1, 2, ... of a message: numbers, signed and of 64 bits, bytes, or texts."""
    found = dict(read_fields(message))  # of equal numbers the last counts
    return [_as(found.get(number, 0 if kind is int else b""), kind) for number, kind in enumerate(kinds, 1)]


def _as(value: Value, kind: type[int | bytes | str]) -> Any:
    if kind is int:
        if not isinstance(value, int):
            raise WireError("bytes in place of a number")
        return value - (1 << 64) if value >> 63 else value
    if not isinstance(value, bytes):
        raise WireError("a number in place of bytes")
    try:
        return value.decode() if kind is str else value
    except UnicodeDecodeError:
        raise WireError("a text that is not UTF-8") from None


def message_field(number: int, *values: int | str) -> bytes:
    """A field with a message, whose fields 1, 2, ... are these."""
    made = (
        number_field(place, value) if isinstance(value, int) else text_field(place, value)
        for place, value in enumerate(values, 1)
    )
    return bytes_field(number, b"".join(made))


def number_field(number: int, value: int) -> bytes:
    """A field with a number of 0 or more, or no bytes for 0, the default."""
    return varint(number << 3 | _VARINT) + varint(value) if value else b""


def bytes_field(number: int, value: bytes) -> bytes:
    """A field with bytes or a message, an empty one too."""
    return varint(number << 3 | _BYTES) + varint(len(value)) + value


def text_field(number: int, value: str) -> bytes:
    """A field with a text, or no bytes for an empty one, the default."""
    return bytes_field(number, value.encode()) if value else b""


def fixed32_field(number: int, value: int) -> bytes:
    """A field with a number of 32 bits."""
    return varint(number << 3 | _FIXED32) + struct.pack("<I", value)
