"""Rows of varying length in HDF5: written by the library, read from the file's own bytes.

The library never comes back from some damaged files of this kind, so only it finds where a dataset's
references lie; the references and the values that they lead to are read here. On disk::

    dataset      16 bytes a row: number of items (u4), address of a collection (u8), number of an object (u4)
    collection   "GCOL", version 1, 3 zeros, bytes of it all (u8), then objects
    object       number (u2), references (u2), 4 zeros, bytes of data (u8), data padded to 8 bytes

Source: HDF5 file format specification 3.0, sections III.E (global heap) and IV.A.2.d (variable length).
Needs NumPy when it is imported.
"""

import struct
import zlib
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from bertdata.errors import ShardError
from bertdata.io.signals import signals_held
from bertdata.shards.hdf5_file import H5PY_ERRORS, load_h5py, one_line
from bertdata.shards.hdf5_storage import MOST_EXPANSION

if TYPE_CHECKING:
    from bertdata.examples.columns import Array

CHUNK_ROWS = 1024
"""Rows of a chunk that we write."""

_REFERENCE = np.dtype([("items", "<u4"), ("address", "<u8"), ("object", "<u4")])
_COLLECTION = struct.Struct("<4sB3xQ")
_OBJECT = struct.Struct("<HH4xQ")
_DEFLATE = 1


def is_varlength(dataset: Any) -> bool:
    """True for a dataset whose rows are lists of varying length."""
    found = load_h5py().check_vlen_dtype(dataset.dtype)
    return found is not None and found not in (str, bytes)


def create_varlength(file: Any, name: str, item: str) -> None:
    """Create an empty dataset of rows of that item type in an h5py.File."""
    kind = load_h5py().vlen_dtype(np.dtype(item))
    file.create_dataset(name, (0,), kind, maxshape=(None,), chunks=(CHUNK_ROWS,), track_times=False)


def append_varlength(file: Any, name: str, values: "Array", ends: "Array") -> None:
    """Append rows, at most CHUNK_ROWS: row i is ``values[ends[i - 1]:ends[i]]``."""
    h5py = load_h5py()
    dataset = file[name]
    start, count = dataset.shape[0], len(ends)
    kind = h5py.check_vlen_dtype(dataset.dtype)
    values = np.ascontiguousarray(values, kind)  # HDF5 reads it in place
    rows = _rows_in_memory(values, np.asarray(ends, np.uint64))
    in_memory = h5py.h5t.vlen_create(h5py.h5t.py_create(kind))
    with signals_held():
        dataset.resize(start + count, axis=0)
        place = dataset.id.get_space()
        place.select_hyperslab((start,), (count,))
        dataset.id.write(h5py.h5s.create_simple((count,)), place, rows, in_memory)
        dataset.flush()  # as Hdf5Writer does


def _rows_in_memory(values: "Array", ends: "Array") -> "Array":
    """Rows as HDF5 has them in memory, its ``hvl_t``: number of items and address. No object for a row."""
    rows = np.zeros(len(ends), [("items", np.uintp), ("address", np.uintp)])
    rows["items"] = np.diff(ends, prepend=np.uint64(0))
    rows["address"] = values.ctypes.data + (ends - rows["items"]) * np.uint64(values.itemsize)
    return rows


class VarlengthColumn:
    """One dataset of rows of varying length, found by h5py in ``file``. Errors call the shard ``name``.

    lengths: the items of each row. ShardError where the dataset cannot hold its rows.
    """

    def __init__(self, dataset: Any, field: str, file: IO[bytes], name: str) -> None:
        self._field, self._file, self._name = field, file, name
        self._file_bytes = file.seek(0, 2)
        self._item = self._item_type(dataset)
        try:
            self._references = self._read_references(dataset)
        except (*H5PY_ERRORS, zlib.error) as error:
            raise ShardError(f"{name}: {field} cannot be read ({one_line(error)})") from error
        self.lengths: Array = self._references["items"].astype(np.int64)
        needed = int(self.lengths.sum()) * self._item.itemsize
        if needed > self._file_bytes:
            raise ShardError(f"{name}: {field} claims {needed:,} bytes of a file of {self._file_bytes:,}")
        self._address = -1
        self._objects: dict[int, memoryview] = {}

    def __len__(self) -> int:
        return len(self._references)

    def read(self, start: int, stop: int) -> "tuple[Array, Array]":
        """Values and ends of rows ``start`` to ``stop``. ShardError names the first that cannot be read."""
        found = self._references[start:stop].tolist()
        pieces = [self._row(start + number, *reference) for number, reference in enumerate(found)]
        values: Array = np.frombuffer(b"".join(pieces), self._item)
        return values, np.cumsum(self.lengths[start:stop])

    def _row(self, row: int, items: int, address: int, number: int) -> bytes | memoryview:
        if not items:
            return b""
        if address != self._address:
            self._objects = self._read_collection(row, address)
            self._address = address
        data = self._objects.get(number)
        if data is None or len(data) != items * self._item.itemsize:
            found = "nothing" if data is None else f"{len(data)} bytes"
            raise self._error(row, f"found {found}, expected {items * self._item.itemsize} bytes")
        return data

    def _read_collection(self, row: int, address: int) -> dict[int, memoryview]:
        """The data of a collection's objects by their numbers. 0 is what is free at its end."""
        head = self._bytes(address, _COLLECTION.size)
        mark, version, size = _COLLECTION.unpack(head) if len(head) == _COLLECTION.size else (b"", 0, 0)
        if (mark, version) != (b"GCOL", 1) or size > self._file_bytes - address:
            raise self._error(row, f"no values at byte {address}")
        body = memoryview(self._bytes(address, size))
        found: dict[int, memoryview] = {}
        place = _COLLECTION.size
        while place + _OBJECT.size <= size:
            number, _, length = _OBJECT.unpack_from(body, place)
            place += _OBJECT.size
            if number == 0 or length > size - place:
                break
            found[number] = body[place : place + length]
            place += -(-length // 8) * 8
        return found

    def _bytes(self, address: int, size: int) -> bytes:
        if not 0 <= address < self._file_bytes:
            return b""
        self._file.seek(address)
        return self._file.read(size)

    def _error(self, row: int, problem: str) -> ShardError:
        return ShardError(f"{self._name}: record {row}: {self._field} cannot be read: {problem}")

    def _item_type(self, dataset: Any) -> np.dtype[Any]:
        found = load_h5py().check_vlen_dtype(dataset.dtype)
        if not isinstance(found, np.dtype) or found.kind not in "iu" or len(dataset.shape) != 1:
            raise ShardError(
                f"{self._name}: {self._field} is {found or dataset.dtype} of shape {dataset.shape}, "
                "expected one list of integers a row"
            )
        return found

    def _read_references(self, dataset: Any) -> "Array":
        rows, filters = dataset.shape[0], dataset.id.get_create_plist().get_nfilters()
        if rows * _REFERENCE.itemsize > MOST_EXPANSION * self._file_bytes:
            raise ValueError(f"{rows:,} rows in a file of {self._file_bytes:,} bytes")
        if dataset.chunks is None:
            data = self._bytes(dataset.id.get_offset() or -1, rows * _REFERENCE.itemsize) if rows else b""
            return self._parse_references(data, rows)
        if filters and (filters, dataset.compression) != (1, "gzip"):
            raise ValueError("its references are encoded, expected gzip or nothing")
        found = np.zeros(rows, _REFERENCE)
        chunks: list[Any] = []
        dataset.id.chunk_iter(chunks.append)
        for chunk in chunks:
            first = chunk.chunk_offset[0]
            data = self._bytes(chunk.byte_offset, chunk.size)
            if filters and not chunk.filter_mask & _DEFLATE:
                data = zlib.decompressobj().decompress(data, dataset.chunks[0] * _REFERENCE.itemsize)
            wanted = min(dataset.chunks[0], rows - first)
            found[first : first + wanted] = self._parse_references(data, wanted)
        return found

    def _parse_references(self, data: bytes, rows: int) -> "Array":
        if len(data) < rows * _REFERENCE.itemsize:
            raise ValueError(f"{len(data):,} bytes of references, expected {rows * _REFERENCE.itemsize:,}")
        parsed: Array = np.frombuffer(data, _REFERENCE, rows)
        return parsed
