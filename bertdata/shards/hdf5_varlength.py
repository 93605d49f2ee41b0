"""Write and read HDF5 datasets whose rows have varying length.

The HDF5 library writes these datasets. This module reads them without the library, which can hang on some
damaged files of this type. The library is used only to find where a dataset's references are in the file. The
references, and the values they point to, are parsed here. In the file they look like this::

    dataset      16 bytes per row: number of items (u4), address of a collection (u8), object number (u4)
    collection   "GCOL", version 1, 3 zeros, total size in bytes (u8), then objects
    object       number (u2), reference count (u2), 4 zeros, data size in bytes (u8), data padded to 8 bytes

Source: HDF5 file format specification 3.0, sections III.E (global heap) and IV.A.2.d (variable length). This
module imports NumPy.
"""

import struct
import zlib
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from bertdata.errors import ShardError
from bertdata.io.signals import delay_signals
from bertdata.shards.hdf5_file import H5PY_ERRORS, format_on_one_line, load_h5py
from bertdata.shards.hdf5_storage import MAX_EXPANSION

if TYPE_CHECKING:
    from bertdata.examples.columns import Array

CHUNK_ROWS = 1024
"""Number of rows in a chunk, in the files that bertdata writes."""

_REFERENCE = np.dtype([("items", "<u4"), ("address", "<u8"), ("object", "<u4")])
_COLLECTION = struct.Struct("<4sB3xQ")
_OBJECT = struct.Struct("<HH4xQ")
_DEFLATE = 1


def is_varlength(dataset: Any) -> bool:
    """Return True if the rows of the h5py dataset are lists of varying length."""
    found = load_h5py().check_vlen_dtype(dataset.dtype)
    return found is not None and found not in (str, bytes)


def create_varlength(file: Any, name: str, item: str) -> None:
    """Create an empty dataset in an h5py.File, whose rows are lists of varying length.

    name: name of the dataset.
    item: type of the lists' items.
    """
    kind = load_h5py().vlen_dtype(np.dtype(item))
    file.create_dataset(name, (0,), kind, maxshape=(None,), chunks=(CHUNK_ROWS,), track_times=False)


def append_varlength(file: Any, name: str, values: "Array", ends: "Array") -> None:
    """Append at most CHUNK_ROWS rows to a dataset. Row i is ``values[ends[i - 1]:ends[i]]``.

    name: name of the dataset.
    """
    h5py = load_h5py()
    dataset = file[name]
    start, count = dataset.shape[0], len(ends)
    kind = h5py.check_vlen_dtype(dataset.dtype)
    values = np.ascontiguousarray(values, kind)  # HDF5 reads the memory of this array directly.
    # Pass the HDF5 library the C structure that it uses for rows of varying length. h5py's usual way would
    # need a Python object for each row.
    rows = _make_hvl_rows(values, np.asarray(ends, np.uint64))
    in_memory = h5py.h5t.vlen_create(h5py.h5t.py_create(kind))
    with delay_signals():
        dataset.resize(start + count, axis=0)
        place = dataset.id.get_space()
        place.select_hyperslab((start,), (count,))
        dataset.id.write(h5py.h5s.create_simple((count,)), place, rows, in_memory)
        dataset.flush()  # Flushing keeps the order of chunks fixed, as Hdf5Output.append explains.


def _make_hvl_rows(values: "Array", ends: "Array") -> "Array":
    """Return the C structure ``hvl_t`` of each row, with the number of its items and their memory address."""
    rows = np.zeros(len(ends), [("items", np.uintp), ("address", np.uintp)])
    rows["items"] = np.diff(ends, prepend=np.uint64(0))
    rows["address"] = values.ctypes.data + (ends - rows["items"]) * np.uint64(values.itemsize)
    return rows


class VarlengthColumn:
    """Reader of a dataset whose rows have varying length.

    The values are parsed from the file's bytes. h5py is used only to find where the dataset is in the file.
    Raises ShardError if the dataset claims more data than the file can hold.

    field: name of the dataset, for errors.
    name: the shard, for errors.
    lengths: number of items in each row.
    """

    def __init__(self, dataset: Any, field: str, file: IO[bytes], name: str) -> None:
        self._field, self._file, self._name = field, file, name
        self._file_bytes = file.seek(0, 2)
        self._item = self._find_item_type(dataset)
        try:
            self._references = self._read_references(dataset)
        except (*H5PY_ERRORS, zlib.error) as error:
            raise ShardError(f"{name}: {field} cannot be read ({format_on_one_line(error)})") from error
        self.lengths: Array = self._references["items"].astype(np.int64)
        needed = int(self.lengths.sum()) * self._item.itemsize
        if needed > self._file_bytes:
            raise ShardError(f"{name}: {field} claims {needed:,} bytes of a file of {self._file_bytes:,}")
        self._address = -1
        self._objects: dict[int, memoryview] = {}

    def __len__(self) -> int:
        return len(self._references)

    def read(self, start: int, stop: int) -> "tuple[Array, Array]":
        """Return the items of the rows ``start`` to ``stop - 1``, and for each row the index after its last
        item.

        Raises ShardError, which names the first unreadable row.
        """
        found = self._references[start:stop].tolist()
        pieces = [self._read_row(start + number, *reference) for number, reference in enumerate(found)]
        values: Array = np.frombuffer(b"".join(pieces), self._item)
        return values, np.cumsum(self.lengths[start:stop])

    def _read_row(self, row: int, items: int, address: int, number: int) -> bytes | memoryview:
        """Return the bytes of a row's items.

        row: index of the row.
        items: number of items in the row.
        address: file offset of the collection that holds the items.
        number: number of the object in the collection.
        """
        if not items:
            return b""
        # A collection holds the items of several rows. Consecutive rows usually share one, so the last one is
        # kept.
        if address != self._address:
            self._objects = self._read_collection(row, address)
            self._address = address
        data = self._objects.get(number)
        if data is None or len(data) != items * self._item.itemsize:
            found = "nothing" if data is None else f"{len(data)} bytes"
            raise self._make_error(row, f"found {found}, expected {items * self._item.itemsize} bytes")
        return data

    def _read_collection(self, row: int, address: int) -> dict[int, memoryview]:
        """Read the collection at a file offset.

        Return the bytes of each of its objects, by the object's number.

        row: index of the row that needs the collection, for errors.
        """
        head = self._read_bytes(address, _COLLECTION.size)
        mark, version, size = _COLLECTION.unpack(head) if len(head) == _COLLECTION.size else (b"", 0, 0)
        if (mark, version) != (b"GCOL", 1) or size > self._file_bytes - address:
            raise self._make_error(row, f"no values at byte {address}")
        body = memoryview(self._read_bytes(address, size))
        found: dict[int, memoryview] = {}
        place = _COLLECTION.size
        while place + _OBJECT.size <= size:
            number, _, length = _OBJECT.unpack_from(body, place)
            place += _OBJECT.size
            # The object with the number 0 is the free space at the end of the collection.
            if number == 0 or length > size - place:
                break
            found[number] = body[place : place + length]
            place += -(-length // 8) * 8
        return found

    def _read_bytes(self, address: int, size: int) -> bytes:
        if not 0 <= address < self._file_bytes:
            return b""
        self._file.seek(address)
        return self._file.read(size)

    def _make_error(self, row: int, problem: str) -> ShardError:
        return ShardError(f"{self._name}: record {row}: {self._field} cannot be read: {problem}")

    def _find_item_type(self, dataset: Any) -> np.dtype[Any]:
        found = load_h5py().check_vlen_dtype(dataset.dtype)
        if not isinstance(found, np.dtype) or found.kind not in "iu" or len(dataset.shape) != 1:
            raise ShardError(
                f"{self._name}: {self._field} is {found or dataset.dtype} of shape {dataset.shape}, "
                "expected one list of integers a row"
            )
        return found

    def _read_references(self, dataset: Any) -> "Array":
        """Return where each row's items are: their number, the address of the collection and the number of
        the object.

        Raises ValueError if the dataset claims an offset or a size that the file cannot have.
        """
        rows, filters = dataset.shape[0], dataset.id.get_create_plist().get_nfilters()
        # A damaged header can state any number of rows. Refuse it before memory is allocated for the rows.
        if rows * _REFERENCE.itemsize > MAX_EXPANSION * self._file_bytes:
            raise ValueError(f"{rows:,} rows in a file of {self._file_bytes:,} bytes")
        if dataset.chunks is None:
            offset = dataset.id.get_offset() or -1  # h5py returns None if no value was written.
            data = self._read_bytes(offset, rows * _REFERENCE.itemsize) if rows else b""
            return self._parse_references(data, rows)
        if filters and (filters, dataset.compression) != (1, "gzip"):
            raise ValueError("its references are encoded, expected gzip or nothing")
        found = np.zeros(rows, _REFERENCE)
        # The references are usually stored in chunks, with or without gzip. The chunks are read from the
        # offsets that h5py reports, and decompressed here.
        chunks: list[Any] = []
        dataset.id.chunk_iter(chunks.append)
        for chunk in chunks:
            first = chunk.chunk_offset[0]
            data = self._read_bytes(chunk.byte_offset, chunk.size)
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
