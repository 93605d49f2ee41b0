"""Parse and write ``tf.train.Example`` messages without TensorFlow.

Messages from any program can be parsed. Messages are written in the canonical form that protobuf's
``SerializeToString(deterministic=True)`` produces: features sorted by key, numbers packed, each number in its
shortest encoding. The same code exists in C++ in _native/shards/tfrecord.h (writing) and
_native/shards/record_reader.h (parsing).
"""

from array import array
from collections.abc import Iterator
from typing import Any

Features = dict[str, "list[int] | array[float] | tuple[bytes, ...] | None"]
"""The features of an Example message by key: a list of integers, an array of 32-bit floats, or a tuple of
byte strings.

None stands for a feature without values.
"""

_BYTES_LIST, _FLOAT_LIST, _INT64_LIST = 1, 2, 3
_VARINT, _LENGTH, _FIXED32 = 0, 2, 5


class NotAnExample(ValueError):
    """Raised for bytes that are not a serialised ``tf.train.Example``."""


def encode_example(features: Features) -> bytes:
    """Return the serialised Example with these features, in canonical form."""
    entries = b"".join(
        _encode_submessage(
            1, _encode_submessage(1, key.encode()) + _encode_submessage(2, _encode_feature(features[key]))
        )
        for key in sorted(features, key=str.encode)
    )
    return _encode_submessage(1, entries)


def canonicalise_example(payload: bytes) -> bytes:
    """Convert a serialised Example to canonical form. An empty message stays empty."""
    return encode_example(decode_example(payload)) if payload else b""


def _encode_feature(values: Any) -> bytes:
    if values is None:
        return b""
    if isinstance(values, array):
        kind, body = _FLOAT_LIST, _encode_packed_numbers(values.tobytes())
    elif isinstance(values, tuple):
        kind, body = _BYTES_LIST, b"".join(_encode_submessage(1, value) for value in values)
    else:
        kind, body = (
            _INT64_LIST,
            _encode_packed_numbers(b"".join(encode_varint(value & (1 << 64) - 1) for value in values)),
        )
    return _encode_submessage(kind, body)


def _encode_packed_numbers(data: bytes) -> bytes:
    return _encode_submessage(1, data) if data else b""


def _encode_submessage(field: int, data: bytes) -> bytes:
    return encode_varint(field << 3 | _LENGTH) + encode_varint(len(data)) + data


def encode_varint(value: int) -> bytes:
    """Encode a non-negative integer as a varint: seven bits per byte, least significant first."""
    if value < 128:
        return bytes((value,))
    digits = bytearray()
    while value >= 128:
        digits.append(value & 127 | 128)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def decode_example(payload: bytes) -> Features:
    """Parse a serialised Example and return its features.

    If a key occurs several times, its last value is returned.

    NotAnExample if the bytes are not a valid Example.
    """
    features: Features = {}
    # An Example message contains a Features message, and this has a map entry for each feature. A map entry
    # is a key and a Feature message.
    for _, body in _split_fields(payload, {1: _LENGTH}):
        for _, entry in _split_fields(body, {1: _LENGTH}):
            key, values = "", None
            for field, data in _split_fields(entry, {1: _LENGTH, 2: _LENGTH}):
                if field == 1:
                    key = _decode_key(data)
                else:
                    values = _decode_feature(data, values)
            features.pop(key, None)
            features[key] = values
    return features


def _decode_key(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise NotAnExample("a key is not UTF-8") from None


def _decode_feature(message: bytes, values: Any) -> Any:
    """Parse a Feature message and return its values.

    values: values of an earlier Feature message with the same key. None if there was none. As in protobuf, a
        list of the same type is appended to them, and a list of another type replaces them.
    """
    for kind, data in _split_fields(
        message, {_BYTES_LIST: _LENGTH, _FLOAT_LIST: _LENGTH, _INT64_LIST: _LENGTH}
    ):
        more: Any
        if kind == _BYTES_LIST:
            more = tuple(value for _, value in _split_fields(data, {1: _LENGTH}))
        elif kind == _FLOAT_LIST:
            more = array("f")
            for wire, value in _split_numbers(data, _FIXED32):
                if len(value) % 4:
                    raise NotAnExample(f"a list of floats is cut (wire type {wire})")
                more.frombytes(value)
        else:
            more = [number for _, value in _split_numbers(data, _VARINT) for number in _split_varints(value)]
        values = values + more if type(values) is type(more) else more
    return values


def _split_numbers(message: bytes, plain: int) -> Iterator[tuple[int, bytes]]:
    """Yield (wire type, bytes) for each field of a list message that holds its numbers. This is field 1.

    The field may hold many packed numbers (wire type 2), or one unpacked number.

    plain: the wire type of an unpacked number.
    """
    for tag, value in _split_raw_fields(message):
        if tag not in (1 << 3 | _LENGTH, 1 << 3 | plain):
            raise NotAnExample(f"unknown field (tag {tag})")
        yield tag & 7, value


def _split_varints(data: bytes) -> Iterator[int]:
    place = 0
    while place < len(data):
        value, place = _read_varint(data, place)
        yield value - (1 << 64) if value >> 63 else value


def _split_fields(message: bytes, known: dict[int, int]) -> Iterator[tuple[int, bytes]]:
    """Yield (field number, bytes) for each field of a message. NotAnExample for an unexpected field.

    known: the wire type that each expected field must have, by field number.
    """
    for tag, value in _split_raw_fields(message):
        if known.get(tag >> 3) != tag & 7:
            raise NotAnExample(f"unknown field (tag {tag})")
        yield tag >> 3, value


def _split_raw_fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (tag, bytes) for each field of a message.

    The tag is field number << 3 | wire type.
    """
    place = 0
    while place < len(message):
        tag, place = _read_varint(message, place)
        if tag & 7 == _LENGTH:
            size, place = _read_varint(message, place)
            end = place + size
        elif tag & 7 == _FIXED32:
            end = place + 4
        elif tag & 7 == _VARINT:
            end = _read_varint(message, place)[1]
        else:
            raise NotAnExample(f"unknown field (tag {tag})")
        if end > len(message):
            raise NotAnExample("a field is longer than its message")
        yield tag, message[place:end]
        place = end


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    """Decode the varint at an offset. Return its value and the offset after it."""
    value = shift = 0
    while shift < 64:
        if place >= len(data):
            break
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (1 << 64) - 1, place
        shift += 7
    raise NotAnExample("broken number")
