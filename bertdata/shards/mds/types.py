"""The types of MDS columns. They convert values to bytes and back.

Source: mosaicml-streaming 0.13, which writes and reads them. All numbers are little-endian.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache, partial
from typing import Any

import numpy as np

from bertdata.examples.columns import Array
from bertdata.io.json_text import parse_json_text

UNSAFE = "pkl"
"""The column type for pickled values, which is refused because reading a pickle would run code."""

DTYPES = {
    8: "uint8",
    9: "int8",
    16: "uint16",
    17: "int16",
    18: "float16",
    32: "uint32",
    33: "int32",
    34: "float32",
    64: "uint64",
    65: "int64",
    66: "float64",
}
"""The types of array items by MDS's codes for them.

An array stores the code if its column does not declare the type.
"""

_CODES = {name: code for code, name in DTYPES.items()}
_SIZES = ("<u1", "<u2", "<u4", "<u8")
_MOST_AXES = 63
_IMAGES = ("pil", "jpeg", "jpeg_array", "jpegarray", "png", "list[pil]", "list[jpeg]", "list[png]")


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnType:
    """The type of a column.

    size: number of bytes of a value. None if it varies.
    encode: function that converts a value to bytes.
    decode: function that converts bytes to a value.

    Both functions raise ValueError if the value or the bytes are not of this type.
    """

    name: str
    size: int | None
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ArrayType:
    """The type of a column of arrays.

    dtype: type of the items. None if it varies. Each value then stores it.
    shape: shape of the arrays. None if it varies. Each value then stores it.
    """

    dtype: str | None
    shape: tuple[int, ...] | None

    @property
    def size(self) -> int | None:
        """Number of bytes of a value. It is None if it varies."""
        if self.dtype is None or self.shape is None:
            return None
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize

    def encode(self, value: Any) -> bytes:
        """Return the bytes of an array.

        Raises ValueError if it has another type or shape than the column, or no items or no axes.
        """
        found = np.asarray(value)
        name = found.dtype.name
        if name not in _CODES or self.dtype not in (None, name):
            raise ValueError(f"an array of {name}, expected {self.dtype or ', '.join(_CODES)}")
        if not found.size or not 1 <= found.ndim <= _MOST_AXES:
            raise ValueError(f"an array of the shape {found.shape}, expected 1 to 63 axes and 1 item or more")
        head = b"" if self.dtype else bytes([_CODES[name]])
        if self.shape is None:
            head += encode_shape(found.shape)
        elif found.shape != self.shape:
            raise ValueError(f"an array of the shape {found.shape}, expected {self.shape}")
        return head + found.astype(found.dtype.newbyteorder("<"), copy=False).tobytes()

    def decode(self, data: bytes) -> Array:
        """Return the array that the bytes hold, as read-only.

        Raises ValueError if they hold no array of this type.
        """
        place, dtype, shape = 0, self.dtype, self.shape
        if dtype is None:
            dtype = DTYPES.get(data[0]) if data else None
            if dtype is None:
                raise ValueError(f"item type {data[:1].hex() or 'missing'}, expected a byte of DTYPES")
            place = 1
        if shape is None:
            shape, place = _decode_shape(data, place)
        kind = np.dtype(dtype).newbyteorder("<")
        expected = place + int(np.prod(shape, dtype=object)) * kind.itemsize
        if len(data) != expected:
            raise ValueError(f"{len(data)} bytes, expected {expected} for {dtype} of the shape {shape}")
        return np.frombuffer(data, kind, offset=place).reshape(shape)


def encode_shape(shape: tuple[int, ...]) -> bytes:
    """Encode the shape of an array as the byte ``axes << 2 | code`` and the length of each axis.

    The code selects the integer type of the lengths, which is the smallest of u1, u2, u4 and u8 that can hold
    them.
    """
    code = next(code for code in range(4) if max(shape) < 1 << (8 << code))
    return bytes([len(shape) << 2 | code]) + np.array(shape, _SIZES[code]).tobytes()


def _decode_shape(data: bytes, place: int) -> tuple[tuple[int, ...], int]:
    """Decode the shape at an offset. Return it and the offset after it."""
    if place >= len(data):
        raise ValueError("no shape")
    axes, kind = data[place] >> 2, np.dtype(_SIZES[data[place] & 3])
    start, stop = place + 1, place + 1 + axes * kind.itemsize
    if stop > len(data) or not axes:
        raise ValueError(f"{len(data)} bytes, with {axes} axes; expected 1 or more, and their lengths")
    return tuple(int(length) for length in np.frombuffer(data[start:stop], kind)), stop


@cache
def find_type(name: str) -> ColumnType:
    """Return the column type with this name.

    Raises ValueError if it is unknown, or if it is the unsafe type for pickles.
    """
    kind, *arguments = name.split(":")
    if kind == UNSAFE:
        raise ValueError(f"type {UNSAFE} runs code when it is read, and is refused; write the column as json")
    if kind == "ndarray":
        array = parse_array_type(name)
        return ColumnType(name=name, size=array.size, encode=array.encode, decode=array.decode)
    if arguments or (kind not in _PLAIN and kind not in _CODES):
        raise ValueError(f"unknown type {name!r}, expected one of {', '.join((*_PLAIN, *_CODES))}, ndarray")
    if kind in _CODES:
        return _make_scalar_type(kind, kind)
    return _PLAIN[kind]


def parse_array_type(name: str) -> ArrayType:
    """Parse the name of an array type: ``ndarray``, then optionally the item type, then optionally the shape.

    An example with all parts is ``ndarray:uint16:2,3``. Raises ValueError for any other name.
    """
    kind, *arguments = name.split(":")
    dtype = arguments[0] if arguments else None
    lengths = arguments[1].split(",") if len(arguments) > 1 else None
    known = kind == "ndarray" and len(arguments) < 3 and (dtype is None or dtype in _CODES)
    if not known or (lengths and not all(length.isdecimal() and int(length) for length in lengths)):
        raise ValueError(f"unknown type {name!r}, expected ndarray, ndarray:TYPE or ndarray:TYPE:LENGTH,...")
    return ArrayType(dtype=dtype, shape=tuple(map(int, lengths)) if lengths else None)


def _make_scalar_type(name: str, dtype: str, *, whole: bool = False) -> ColumnType:
    """Return the column type of a single number.

    whole: True accepts only integers.
    """
    kind = np.dtype(dtype).newbyteorder("<")

    def encode(value: Any) -> bytes:
        if whole:
            _check_type(int, value)
        try:
            return np.array(value, kind).reshape(()).tobytes()
        except (TypeError, OverflowError) as error:
            raise ValueError(f"{value!r}: {error}") from None

    def decode(data: bytes) -> Any:
        if len(data) != kind.itemsize:
            raise ValueError(f"{len(data)} bytes, expected {kind.itemsize}")
        return np.frombuffer(data, kind)[0].item()

    return ColumnType(name=name, size=kind.itemsize, encode=encode, decode=decode)


def _check_type(kind: type[Any], value: Any) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{value!r}, expected {kind.__name__}")
    return value


def _make_text_type(
    name: str, kind: type[Any], to_text: Callable[[Any], str], of_text: Callable[[str], Any]
) -> ColumnType:
    """Return a column type whose values are stored as UTF-8 text.

    kind: Python type of the values.
    to_text: converts a value to text.
    of_text: converts text to a value.
    """

    def decode(data: bytes) -> Any:
        try:
            return of_text(data.decode())
        except InvalidOperation:
            raise ValueError(f"{data!r} is no number") from None

    return ColumnType(
        name=name, size=None, encode=lambda value: to_text(_check_type(kind, value)).encode(), decode=decode
    )


def _dump_json(value: Any) -> str:
    try:
        return json.dumps(value.tolist() if isinstance(value, np.ndarray) else value)
    except TypeError as error:
        raise ValueError(str(error)) from None


def _make_bytes_type(name: str) -> ColumnType:
    return ColumnType(name=name, size=None, encode=partial(_check_type, bytes), decode=bytes)


_PLAIN = {
    "bytes": _make_bytes_type("bytes"),
    "str": _make_text_type("str", str, str, str),
    "int": _make_scalar_type("int", "int64", whole=True),
    "str_int": _make_text_type("str_int", int, str, int),
    "str_float": _make_text_type("str_float", float, str, float),
    "str_decimal": _make_text_type("str_decimal", Decimal, str, Decimal),
    "json": _make_text_type("json", object, _dump_json, partial(parse_json_text, any_number=True)),
    **{name: _make_bytes_type(name) for name in _IMAGES},  # Images stay encoded as PNG, JPEG and so on.
}
