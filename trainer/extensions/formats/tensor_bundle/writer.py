"""A bundle that is written tensor by tensor, with one data file."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import torch
from torch import Tensor

from bertdata.io import storage
from bertdata.shards.checksum import masked
from trainer.extensions.formats.tensor_bundle.entries import FLOAT, INT64, STRING, BundleEntry, encode_header
from trainer.extensions.formats.tensor_bundle.table import write_table
from trainer.extensions.formats.tensor_bundle.wire import varint

_DTYPES = {torch.float32: FLOAT, torch.int64: INT64}


class BundleWriter:
    """The data file of a bundle that grows, and the entries of its index."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offset = 0
        self.entries: dict[str, BundleEntry] = {}

    def add(self, name: str, tensor: Tensor) -> None:
        """Write a tensor of fp32 or int64."""
        data = tensor.detach().contiguous().flatten().view(torch.uint8).numpy().data
        self._add(name, _DTYPES[tensor.dtype], tuple(tensor.shape), data, masked(data))

    def add_text(self, name: str, text: bytes) -> None:
        """Write bytes as a scalar of TensorFlow's type string."""
        length = struct.pack("<I" if len(text) < 1 << 32 else "<Q", len(text))
        checksum = struct.pack("<I", masked(length))
        data = memoryview(varint(len(text)) + checksum + text)
        self._add(name, STRING, (), data, masked(length + checksum + text))

    def _add(self, name: str, dtype: int, shape: tuple[int, ...], data: memoryview, crc: int) -> None:
        self._file.write(data)
        self.entries[name] = BundleEntry(dtype, shape, 0, self._offset, len(data), crc)
        self._offset += len(data)


@contextmanager
def write_bundle(prefix: str) -> Iterator[BundleWriter]:
    """A writer of ``prefix.data-00000-of-00001``; ``prefix.index`` follows when the block ends well."""
    with storage.open_output(f"{prefix}.data-00000-of-00001") as file:
        writer = BundleWriter(file)
        yield writer
    entries = {name.encode(): entry.encode() for name, entry in writer.entries.items()}
    with storage.open_output(f"{prefix}.index") as file:
        write_table(file, [(b"", encode_header(1)), *sorted(entries.items())])
