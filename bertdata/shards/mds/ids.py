"""Convert the ids of many examples to MDS samples at once, and back.

bertdata's samples have the columns id (the sample's name), input_ids and optionally len (the number of ids).
"""

import struct
from collections.abc import Callable, Iterable

import numpy as np

from bertdata.examples.columns import Array
from bertdata.shards.mds.index import ShardForm
from bertdata.shards.mds.types import DTYPES, ArrayType, encode_shape, parse_array_type

ID_COLUMNS = ("input_ids", "tokens")
"""Columns that may hold the ids of a sample. The first that exists is used. EuroBERT's data has
``tokens``.
"""
TEXT_COLUMN = "text"

_WORD = 4
_ROW_SIZES = struct.Struct("<II")
Refuse = Callable[[Array, Callable[[int], str]], None]
"""Function that raises an error for the first sample marked as wrong.

Its second argument is a function that describes what is wrong with a sample.
"""


def make_id_form(*, wide: bool, with_len: bool, **others: object) -> ShardForm:
    """Return the form (columns, compression and hashes) of shards whose samples are token ids.

    wide: True for 32-bit ids, False for 16-bit ids.
    with_len: True adds the column len, the number of ids.
    others: further fields of ShardForm, such as hashes.
    """
    columns = {"id": "str", "input_ids": f"ndarray:uint{32 if wide else 16}"}
    return ShardForm.from_columns({**columns, **({"len": "int"} if with_len else {})}, **others)


def compute_sample_sizes(counts: Array, name_sizes: Array, *, wide: bool, with_len: bool) -> Array:
    """Return the size of each sample in bytes.

    counts: number of ids of each sample, 1 to 65535.
    name_sizes: number of bytes of each sample's name.
    wide: True for 32-bit ids, False for 16-bit ids.
    with_len: True if samples have the column len.
    """
    ids = counts.astype(np.int64)
    shape = np.where(ids < 1 << 8, 2, 3)
    return 2 * _WORD + name_sizes + shape + ids * (4 if wide else 2) + (8 if with_len else 0)


def compute_name_sizes(stem: str, start: int, stop: int) -> Array:
    """Return how many bytes the names ``<stem>-<index>`` have, for the indices ``start`` to ``stop - 1``."""
    numbers, size = np.arange(start, stop), np.full(stop - start, len(stem.encode()) + 2)
    for digits in range(1, len(str(max(stop, 1))) + 1):
        size += numbers >= 10**digits
    return size


def encode_ids(
    ids: Array, ends: Array, names: Iterable[str], *, wide: bool, with_len: bool
) -> tuple[bytes, list[int]]:
    """Encode ids as samples.

    Return the bytes of all samples, one after another, and the size of each in bytes.

    ends: for each sample, the index after its last id.
    names: name of each sample.
    wide: True for 32-bit ids, False for 16-bit ids.
    with_len: True adds the column len.
    """
    width = 4 if wide else 2
    data = memoryview(np.ascontiguousarray(ids, dtype=f"<u{width}").view(np.uint8).data)
    pieces: list[bytes | memoryview] = []
    sizes, start = [], 0
    for name, end in zip(names, np.asarray(ends).tolist(), strict=True):
        # A sample has these parts in this order: the sizes of its name and its array, the name, the array
        # (its shape, then the ids), and the number of ids if ``with_len``.
        text, shape = name.encode(), encode_length(end - start)
        body = len(shape) + width * (end - start)
        pieces += (_ROW_SIZES.pack(len(text), body), text, shape, data[width * start : width * end])
        if with_len:
            pieces.append((end - start).to_bytes(8, "little"))
        sizes.append(2 * _WORD + len(text) + body + (8 if with_len else 0))
        start = end
    return b"".join(pieces), sizes


def encode_length(length: int) -> bytes:
    """Encode the shape of a one-dimensional array with this length. It is faster than ``encode_shape``."""
    if length < 1 << 8:
        return bytes((4, length))
    return b"\x05" + length.to_bytes(2, "little") if length < 1 << 16 else encode_shape((length,))


def find_id_column(form: ShardForm, ids_type: str | None = None) -> str:
    """Return the name of the column that holds the token ids.

    Raises ValueError if there is none, or if it does not hold integers.

    form: the columns of the shard.
    ids_type: integer type of the ids. It is needed only if their column has the type bytes, which does not
        show it.
    """
    for name in ID_COLUMNS:
        if name in form.names:
            kind = form.types[form.names.index(name)]
            if kind.split(":")[0] == "ndarray" and "float" not in kind:
                return name
            if kind == "bytes" and ids_type is not None:
                return name
            if kind == "bytes":
                raise ValueError(
                    f"column {name} is of the type bytes, which does not say how wide an id is; name the "
                    "type that its program wrote, as in bertdata convert SRC DST --ids-type int64"
                )
            raise ValueError(f"column {name} is of the type {kind}, expected ndarray of whole numbers")
    if TEXT_COLUMN in form.names:
        raise ValueError(f"holds text (column {TEXT_COLUMN}), not ids; expected the column {ID_COLUMNS[0]}")
    raise ValueError(f"has the columns {', '.join(form.names)}, expected {' or '.join(ID_COLUMNS)}")


class IdDecoder:
    """Decoder of the ids of many samples at once."""

    def __init__(self, form: ShardForm, ids_type: str | None = None) -> None:
        """Find the column that holds the token ids. Raises ValueError if there is none.

        form: the columns of the shard.
        ids_type: integer type of the ids. It is needed only if their column has the type bytes.
        """
        name = find_id_column(form, ids_type)
        self._at = form.names.index(name)
        self._sizes = [kind.size for kind in form.find_column_types()]
        self._is_bytes = form.types[self._at] == "bytes"
        self._array: ArrayType = parse_array_type(
            f"ndarray:{ids_type}" if self._is_bytes else form.types[self._at]
        )
        if self._array.shape is not None and len(self._array.shape) != 1:
            raise ValueError(f"column {name} has the shape {self._array.shape}, expected one axis")

    def decode(self, data: bytes, bounds: Array, refuse: Refuse) -> tuple[Array, Array]:
        """Return the ids of all samples, and for each sample the index after its last id.

        bounds: byte offset of each sample in ``data``, followed by the end of the last sample.
        refuse: function that raises the error for a faulty sample.
        """
        buffer = np.frombuffer(data, np.uint8)
        starts, stops = self._find_spans(buffer, bounds, refuse)
        counts, items = self._count_ids(buffer, starts, stops, refuse)
        kinds = np.unique(items).tolist()
        if len(kinds) == 1:
            dtype = np.dtype(DTYPES[kinds[0]]).newbyteorder("<")
            begins = (stops - counts * dtype.itemsize).tolist()
            view = memoryview(data)
            joined = b"".join([view[a:b] for a, b in zip(begins, stops.tolist(), strict=True)])
            return np.frombuffer(joined, dtype), np.cumsum(counts)
        return self._decode_mixed(data, stops, counts, items), np.cumsum(counts)

    def count_ids(self, data: bytes, bounds: Array, refuse: Refuse) -> Array:
        """Return the number of ids of each sample."""
        buffer = np.frombuffer(data, np.uint8)
        return self._count_ids(buffer, *self._find_spans(buffer, bounds, refuse), refuse)[0]

    def _find_spans(self, buffer: Array, bounds: Array, refuse: Refuse) -> tuple[Array, Array]:
        """Return the byte offsets in each sample where the column of ids begins and ends."""
        # A sample begins with a u32 for each column whose size varies, which states the size. Then come all
        # columns.
        varying = [number for number, size in enumerate(self._sizes) if size is None]
        found = np.diff(bounds)
        least = _WORD * len(varying)
        refuse(found < least, lambda i: f"{found[i]} bytes, expected {least} or more")
        starts = bounds[:-1]
        free = _gather_bytes(buffer, starts, _WORD * len(varying)).view("<u4").astype(np.int64)
        sizes = [
            free[:, varying.index(number)] if size is None else np.full(len(starts), size)
            for number, size in enumerate(self._sizes)
        ]
        due = sum(sizes, np.full(len(starts), least))
        refuse(found != due, lambda i: f"{found[i]} bytes, expected {due[i]} by the sizes of its columns")
        begins = starts + least + sum(sizes[: self._at], np.zeros(len(starts), np.int64))
        return begins, begins + sizes[self._at]

    def _count_ids(self, buffer: Array, starts: Array, stops: Array, refuse: Refuse) -> tuple[Array, Array]:
        """Return the number of ids of each sample, and the code of their integer type.

        starts, stops: byte offsets where the sample's column of ids begins and ends.
        """
        place = starts
        if self._is_bytes:
            return self._count_plain_ids(stops - starts, refuse)
        if self._array.dtype is None:
            refuse(stops <= place, lambda _: "an array of no bytes")
            items, place = buffer[place].astype(np.int64), place + 1
            known = [code for code, name in DTYPES.items() if "float" not in name]
            refuse(~np.isin(items, known), lambda i: f"item type {items[i]}, expected one of whole numbers")
        else:
            codes = {name: code for code, name in DTYPES.items()}
            items = np.full(len(place), codes[self._array.dtype])
        if self._array.shape is not None:
            counts = np.full(len(place), self._array.shape[0])
        else:
            refuse(stops <= place, lambda _: "an array without a shape")
            shapes = buffer[place]
            refuse(shapes >> 2 != 1, lambda i: f"ids of {shapes[i] >> 2} axes, expected 1")
            counts, place = _read_shapes(buffer, place, stops, refuse)
        widths = np.maximum(items >> 3, 1)  # The code of a type, shifted right by 3, is its width in bytes.
        due = place + counts * widths
        refuse(stops != due, lambda i: f"{stops[i] - place[i]} bytes of ids, expected {due[i] - place[i]}")
        return counts, items

    def _count_plain_ids(self, sizes: Array, refuse: Refuse) -> tuple[Array, Array]:
        """Return the number of ids of each sample and the code of their type, for a column of type bytes.

        Such a column stores no shape, so the number follows from the size of the value.
        """
        width = np.dtype(self._array.dtype).itemsize
        refuse(sizes % width != 0, lambda i: f"{sizes[i]} bytes of ids, expected a multiple of {width}")
        code = next(code for code, name in DTYPES.items() if name == self._array.dtype)
        return sizes // width, np.full(len(sizes), code)

    def _decode_mixed(self, data: bytes, stops: Array, counts: Array, items: Array) -> Array:
        """Return the ids of samples that have different integer types, as int64."""
        rows = []
        for stop, count, code in zip(stops.tolist(), counts.tolist(), items.tolist(), strict=True):
            kind = np.dtype(DTYPES[code]).newbyteorder("<")
            rows.append(np.frombuffer(data, kind, count, stop - count * kind.itemsize))
        return np.concatenate([_convert_to_int64(row) for row in rows])


def _read_shapes(buffer: Array, place: Array, stops: Array, refuse: Refuse) -> tuple[Array, Array]:
    """Parse the shape of a one-dimensional array at each offset.

    Returns for each the array's length and the offset after the shape.
    """
    codes = buffer[place] & 3
    behind = place + 1 + (1 << codes.astype(np.int64))
    refuse(behind > stops, lambda _: "an array that ends in its shape")
    counts = np.zeros(len(place), np.int64)
    for code in np.unique(codes).tolist():
        chosen = codes == code
        found = _gather_bytes(buffer, place[chosen] + 1, 1 << code).view(f"<u{1 << code}")[:, 0]
        # A damaged shape can state any length. The length is limited, so that its product with the width of
        # an id cannot overflow.
        counts[chosen] = np.minimum(_convert_to_int64(found), 1 << 40)
    return counts, behind


def _gather_bytes(buffer: Array, places: Array, width: int) -> Array:
    """Return the ``width`` bytes from each offset on, as a row of an array per offset."""
    return np.ascontiguousarray(buffer[places[:, np.newaxis] + np.arange(width)])


def _convert_to_int64(values: Array) -> Array:
    """Return numbers as int64. Unsigned numbers that are too large become the largest int64."""
    return (np.minimum(values, (1 << 63) - 1) if values.dtype.itemsize == 8 else values).astype(np.int64)
