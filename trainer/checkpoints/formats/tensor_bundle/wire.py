"""The wire format of protocol buffers: varints, and fields by number."""

import struct
from collections.abc import Iterator
from typing import Any

from bertdata.shards.example_proto import encode_varint

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}
_LONGEST_VARINT = 10

Value = int | bytes
"""The value of a field: an unsigned number, or bytes, which may be a text or another message."""


class WireError(ValueError):
    """The bytes are not a message in this format."""


def read_varint(data: bytes, start: int) -> tuple[int, int]:
    """Read a varint at an offset. Return its number and the offset after it."""
    value = 0
    # Seven bits per byte, lowest first. The highest bit says that more bytes follow: [0xAC, 0x02] -> 300.
    for number, byte in enumerate(data[start : start + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, start + number + 1
    raise WireError("a number without an end")


def read_varints(data: bytes, start: int, count: int) -> tuple[list[int], int]:
    """Read ``count`` varints in a row. Return their numbers and the offset after them."""
    numbers = []
    for _ in range(count):
        number, start = read_varint(data, start)
        numbers.append(number)
    return numbers, start


def read_bytes(data: bytes, start: int, size: int) -> bytes:
    """Return ``size`` bytes from offset ``start``. WireError if the data end earlier."""
    found = data[start : start + size]
    if len(found) < size:
        raise WireError(f"ends after {len(found)} of {size} bytes")
    return found


def read_fields(message: Value) -> Iterator[tuple[int, Value]]:
    """Yield (number, value) of each field of a message, in order."""
    data, place = _convert_value(message, bytes), 0
    while place < len(data):
        # A field's key has the field's number and, in the lowest 3 bits, the type of its value.
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
    """Return the fields 1, 2, ... of a message: signed 64-bit numbers, bytes, or texts.

    kinds: type of each field. A missing field is 0 or empty.
    """
    found = dict(read_fields(message))  # if a field is repeated, its last value counts
    return [
        _convert_value(found.get(number, 0 if kind is int else b""), kind)
        for number, kind in enumerate(kinds, 1)
    ]


def _convert_value(value: Value, kind: type[int | bytes | str]) -> Any:
    """Convert a field's value to this type. WireError if the field has another type."""
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


def encode_message_field(number: int, *values: int | str) -> bytes:
    """Encode a field that contains a message, whose fields 1, 2, ... have these values."""
    made = (
        encode_number_field(place, value) if isinstance(value, int) else encode_text_field(place, value)
        for place, value in enumerate(values, 1)
    )
    return encode_bytes_field(number, b"".join(made))


def encode_number_field(number: int, value: int) -> bytes:
    """Encode a field that contains a number of 0 or more. Return nothing for 0, which is the default."""
    return encode_varint(number << 3 | _VARINT) + encode_varint(value) if value else b""


def encode_bytes_field(number: int, value: bytes) -> bytes:
    """Encode a field that contains bytes or a message. An empty value is encoded too."""
    return encode_varint(number << 3 | _BYTES) + encode_varint(len(value)) + value


def encode_text_field(number: int, value: str) -> bytes:
    """Encode a field that contains a text. Return nothing for an empty text, which is the default."""
    return encode_bytes_field(number, value.encode()) if value else b""


def encode_fixed32_field(number: int, value: int) -> bytes:
    """Encode a field that contains a 32-bit number."""
    return encode_varint(number << 3 | _FIXED32) + struct.pack("<I", value)
