"""A bundle opened for reading: entries by name; tensors are read from the data files one at a time."""

import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from bertdata.io import storage
from bertdata.shards.checksum import masked
from trainer.checkpoint.stored import MOST_UPDATES
from trainer.errors import CheckpointError
from trainer.extensions.formats.tensor_bundle.entries import STRING, BundleEntry, parse_header
from trainer.extensions.formats.tensor_bundle.table import read_table
from trainer.extensions.formats.tensor_bundle.wire import WireError, read_bytes, read_varint

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
"""The types of TensorFlow's numbers that are read."""

_INTEGERS = (3, 9)


class Bundle:
    """The tensors of ``prefix.index`` by name. CheckpointError names the file that is damaged or foreign."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.index = f"{prefix}.index"
        self.entries: dict[str, BundleEntry] = {}
        self._shards = 0
        with _naming(self.index):
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
        """The tensor, its checksum checked."""
        entry = self.entries[name]
        dtype = _DTYPES.get(entry.dtype)
        if dtype is None or entry.sliced:
            what = "is partitioned" if entry.sliced else f"has TensorFlow's type {entry.dtype}"
            raise CheckpointError(f"{self.index}: {name} {what}, which is not read")
        wanted = torch.empty(0, dtype=dtype).element_size() * math.prod(entry.shape)
        if entry.size != wanted:
            raise CheckpointError(f"{self.index}: {name} has {entry.size} bytes, expected {wanted}")
        data = self._read(name, entry)
        if masked(data) != entry.crc:
            raise CheckpointError(f"{self._file(entry)}: {name}: the checksum does not fit: damaged")
        if not data.size:
            return torch.empty(entry.shape, dtype=dtype)
        return torch.from_numpy(data).view(dtype).reshape(entry.shape)

    def read_count(self, name: str) -> int:
        """The value of a scalar that counts updates; CheckpointError for anything else."""
        entry = self.entries[name]
        if entry.shape or entry.dtype not in _INTEGERS:
            raise CheckpointError(f"{self.index}: {name} is no single integer, expected a number of updates")
        count = int(self.read(name))
        if not 0 <= count <= MOST_UPDATES:
            raise CheckpointError(f"{self.index}: {name} is {count}, expected a number of updates from 0")
        return count

    def read_text(self, name: str) -> bytes:
        """The bytes of a scalar of TensorFlow's type string, their checksums checked."""
        entry = self.entries[name]
        where = self._file(entry)
        if entry.dtype != STRING or entry.shape or entry.sliced:
            raise CheckpointError(f"{self.index}: {name} is no single text")
        data = self._read(name, entry).tobytes()
        with _naming(where):
            size, place = read_varint(data, 0)
            checksum, text = read_bytes(data, place, 4), read_bytes(data, place + 4, size)
        length = struct.pack("<I" if size < 1 << 32 else "<Q", size)
        if struct.pack("<I", masked(length)) != checksum or masked(length + checksum + text) != entry.crc:
            raise CheckpointError(f"{where}: {name}: the checksum does not fit: damaged")
        return text

    def _file(self, entry: BundleEntry) -> str:
        return f"{self.prefix}.data-{entry.shard:05d}-of-{self._shards:05d}"

    def _read(self, name: str, entry: BundleEntry) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
        """The entry's bytes; memory is taken for those that the file has, whatever the index claims."""
        path = self._file(entry)
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


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Turn bytes that make no sense into an error that names the file."""
    try:
        yield
    except (WireError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path}: is damaged: {error}") from None
