"""TensorFlow's tensor bundles: finding them, reading single tensors, and writing them.

The index is a sorted table. Its empty key has a BundleHeaderProto, and each tensor's name has a
BundleEntryProto, which says where in which data file the tensor's bytes are.

    NAME.index                  "" -> header
                                "bert/pooler/dense/bias" -> type, shape, file, offset, size, checksum
    NAME.data-00000-of-00001    the bytes of all tensors
"""

import math
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from bertdata.errors import DataError
from bertdata.io import storage
from bertdata.shards.crc32c import compute_masked_checksum
from bertdata.shards.example_proto import encode_varint
from trainer.checkpoints.any_checkpoint import MOST_UPDATES
from trainer.checkpoints.formats.tensor_bundle.table import read_table, write_table
from trainer.checkpoints.formats.tensor_bundle.wire import (
    WireError,
    encode_bytes_field,
    encode_fixed32_field,
    encode_message_field,
    encode_number_field,
    read_bytes,
    read_fields,
    read_message,
    read_varint,
)
from trainer.errors import CheckpointError

_ENDING = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")
_STATE = re.compile(r'^model_checkpoint_path: "([^\0]*)"$', re.MULTILINE)

_MOST_DIMENSIONS = 254  # most axes of a tensor in TensorFlow
_LARGEST = 1 << 62  # limit for the product of a shape's sizes without zeros, which torch computes in 64 bits

_DTYPES = {
    1: torch.float32,
    2: torch.float64,
    3: torch.int32,
    4: torch.uint8,
    5: torch.int16,
    6: torch.int8,
    9: torch.int64,
    10: torch.bool,
    14: torch.bfloat16,
    19: torch.float16,
}
"""TensorFlow's number types that can be read."""

_NUMBERS = {dtype: number for number, dtype in _DTYPES.items()}
_INTEGERS = (3, 9)
_STRING = 7


def find_prefix(path: str) -> str | None:
    """Return the prefix of the bundle at a path, or None.

    The path may be the prefix, one of the bundle's files, or a directory, whose newest bundle is taken.
    DataError for a directory with several bundles and no file ``checkpoint`` that names one.
    """
    if not storage.is_directory(path):
        prefix = _ENDING.sub("", path)
        return prefix if storage.exists(f"{prefix}.index") else None
    state = storage.join(path, "checkpoint")
    is_file = storage.exists(state) and not storage.is_directory(state)
    if is_file and (named := _STATE.search(storage.read_bytes(state).decode(errors="replace"))):
        prefix = storage.join(path, storage.get_base_name(named[1]))
        if storage.exists(f"{prefix}.index"):
            return prefix
    names = [name for name in storage.list_files(path) if name.endswith(".index") and "/" not in name]
    if len(names) > 1:
        raise DataError(
            f"{path}: holds {len(names)} TensorFlow checkpoints, the first {names[0]}; name one of them "
            "without its ending"
        )
    return storage.join(path, names[0].removesuffix(".index")) if names else None


@dataclass(frozen=True, slots=True)
class BundleEntry:
    """A tensor's type, shape, place in its data file, and masked CRC-32C."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc: int
    sliced: bool = False  # True for a variable in several parts, whose values are under other keys

    @classmethod
    def parse(cls, data: bytes) -> "BundleEntry":
        """Parse a BundleEntryProto. WireError for values that no tensor can have."""
        dtype, proto, shard, offset, size, crc = read_message(data, int, bytes, int, int, int, int)
        sizes = (value for number, value in read_fields(proto) if number == 2)
        shape = tuple(size for one in sizes for size in read_message(one, int))
        if min(dtype, shard, offset, size, crc, *shape) < 0:
            raise WireError("an entry with a negative number")
        if len(shape) > _MOST_DIMENSIONS or math.prod(size or 1 for size in shape) > _LARGEST:
            raise WireError("a shape that no tensor has")
        return cls(dtype, shape, shard, offset, size, crc, sliced=7 in dict(read_fields(data)))

    def encode(self) -> bytes:
        """Encode the entry as the bytes of a BundleEntryProto."""
        shape = b"".join(encode_message_field(2, size) for size in self.shape)
        place = (self.shard, self.offset, self.size)
        numbers = b"".join(encode_number_field(number, value) for number, value in enumerate(place, 3))
        return (
            encode_number_field(1, self.dtype)
            + encode_bytes_field(2, shape)
            + numbers
            + encode_fixed32_field(6, self.crc)
        )


def parse_header(data: bytes) -> tuple[int, bool]:
    """Return (number of data files, whether numbers are little-endian)."""
    shards, endianness = read_message(data, int, int)
    return shards, endianness == 0


def encode_header(shards: int) -> bytes:
    """Return the header, version 1, for little-endian data files."""
    return encode_number_field(1, shards) + encode_message_field(3, 1)


class Bundle:
    """An open tensor bundle, which reads tensors by name. ``prefix`` is the path of its files without
    endings.

    CheckpointError names a file that is damaged or of another format.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.index = f"{prefix}.index"
        self.entries: dict[str, BundleEntry] = {}
        self._shards = 0
        with _name_file_in_errors(self.index):
            for key, value in read_table(storage.read_bytes(self.index), self.index):
                if key:
                    self.entries[key.decode()] = BundleEntry.parse(value)
                else:
                    self._shards, little_endian = parse_header(value)
                    if not little_endian:
                        raise WireError("its numbers are big-endian")
        if not self._shards:
            raise CheckpointError(f"{self.index}: no TensorFlow checkpoint: it has no header")

    def read(self, name: str) -> Tensor:
        """Read a tensor and check its checksum."""
        entry = self.entries[name]
        dtype = _DTYPES.get(entry.dtype)
        if dtype is None or entry.sliced:
            what = "is partitioned" if entry.sliced else f"has TensorFlow's type {entry.dtype}"
            raise CheckpointError(f"{self.index}: {name} {what}, which is not read")
        wanted = torch.empty(0, dtype=dtype).element_size() * math.prod(entry.shape)
        if entry.size != wanted:
            raise CheckpointError(f"{self.index}: {name} has {entry.size} bytes, expected {wanted}")
        data = self._read(name, entry)
        if compute_masked_checksum(data) != entry.crc:
            raise CheckpointError(
                f"{self._find_data_file(entry)}: {name}: the checksum does not fit: damaged"
            )
        if not data.size:
            return torch.empty(entry.shape, dtype=dtype)
        return torch.from_numpy(data).view(dtype).reshape(entry.shape)

    def read_count(self, name: str) -> int:
        """Read the number of updates from a tensor with a single value. CheckpointError if it is not a whole
        number.
        """
        entry = self.entries[name]
        if entry.shape or entry.dtype not in _INTEGERS:
            raise CheckpointError(f"{self.index}: {name} is no single integer, expected a number of updates")
        count = int(self.read(name))
        if not 0 <= count <= MOST_UPDATES:
            raise CheckpointError(f"{self.index}: {name} is {count}, expected a number of updates from 0")
        return count

    def read_text(self, name: str) -> bytes:
        """Read the bytes of a scalar of TensorFlow's type string and check their checksums."""
        entry = self.entries[name]
        where = self._find_data_file(entry)
        if entry.dtype != _STRING or entry.shape or entry.sliced:
            raise CheckpointError(f"{self.index}: {name} is no single text")
        data = self._read(name, entry).tobytes()
        with _name_file_in_errors(where):
            # A string tensor is stored as: length (varint), checksum of the length (4 bytes), the bytes.
            size, place = read_varint(data, 0)
            found, text = read_bytes(data, place, 4), read_bytes(data, place + 4, size)
        if (found, entry.crc) != _compute_text_checksums(text):
            raise CheckpointError(f"{where}: {name}: the checksum does not fit: damaged")
        return text

    def _find_data_file(self, entry: BundleEntry) -> str:
        """Return the path of the data file that contains this entry's bytes."""
        return f"{self.prefix}.data-{entry.shard:05d}-of-{self._shards:05d}"

    def _read(self, name: str, entry: BundleEntry) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
        """Return an entry's bytes.

        The size is compared with the file's size first, so that a damaged index cannot make the reader
        allocate far too much memory.
        """
        path = self._find_data_file(entry)
        with storage.open_input(path) as file:
            there = file.seek(0, 2) - entry.offset
            if there < entry.size:
                raise CheckpointError(
                    f"{path}: {name}: found {max(there, 0)} of {entry.size} bytes: truncated"
                )
            file.seek(entry.offset)
            data = np.empty(entry.size, np.uint8)
            file.readinto(data.data)  # type: ignore[attr-defined]
        return data


def _compute_text_checksums(text: bytes) -> tuple[bytes, int]:
    """Return two checksums of a text: of its length, which is stored before it, and of the whole entry."""
    length = struct.pack("<I" if len(text) < 1 << 32 else "<Q", len(text))
    checksum = struct.pack("<I", compute_masked_checksum(length))
    return checksum, compute_masked_checksum(length + checksum + text)


@contextmanager
def _name_file_in_errors(path: str) -> Iterator[None]:
    """Turn an error about unreadable bytes in the block into a CheckpointError that names the file."""
    try:
        yield
    except (WireError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path}: is damaged: {error}") from None


class BundleWriter:
    """Object that writes tensors to a bundle's data file and collects the entries of its index."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offset = 0
        self.entries: dict[str, BundleEntry] = {}

    def add(self, name: str, tensor: Tensor) -> None:
        """Write a tensor of fp32 or int64."""
        data = tensor.detach().contiguous().flatten().view(torch.uint8).numpy().data
        self._add(name, _NUMBERS[tensor.dtype], tuple(tensor.shape), data, compute_masked_checksum(data))

    def add_text(self, name: str, text: bytes) -> None:
        """Write bytes as a scalar of TensorFlow's type string."""
        checksum, crc = _compute_text_checksums(text)
        self._add(name, _STRING, (), memoryview(encode_varint(len(text)) + checksum + text), crc)

    def _add(self, name: str, dtype: int, shape: tuple[int, ...], data: memoryview, crc: int) -> None:
        """Append the bytes to the data file and record the entry."""
        self._file.write(data)
        self.entries[name] = BundleEntry(dtype, shape, 0, self._offset, len(data), crc)
        self._offset += len(data)


@contextmanager
def write_bundle(prefix: str) -> Iterator[BundleWriter]:
    """Yield a writer of ``prefix.data-00000-of-00001``. The index is written when the block succeeds."""
    with storage.open_output(f"{prefix}.data-00000-of-00001") as file:
        writer = BundleWriter(file)
        yield writer
    entries = {name.encode(): entry.encode() for name, entry in writer.entries.items()}
    with storage.open_output(f"{prefix}.index") as file:
        write_table(file, [(b"", encode_header(1)), *sorted(entries.items())])
