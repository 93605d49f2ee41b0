"""Safetensors files whose rows are read and written in place, so that several processes can share a file."""

import json
import math
import os
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from bertdata.errors import DataError
from bertdata.io import storage
from bertdata.io.json_text import parse_json_text
from trainer.checkpoints.any_checkpoint import StoredTensor
from trainer.checkpoints.checkpoint import get_tensor_bytes, make_safetensors_header

INDEX = ".index.json"
"""Suffix of the file that says which of several files has a tensor, as in Hugging Face's format."""

_TYPES = (
    *("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"),
    *("I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"),
)
"""Number types that can be read. The format also has packed and complex types."""

_LARGEST = 1 << 62  # limit for the product of a shape's sizes without zeros, which torch computes in 64 bits

_MOST_BYTES = 1 << 30  # most bytes to read or write in one call. Linux's limit is 2 GiB


class TensorPlace(NamedTuple):
    """Shape and byte offset of an fp32 tensor in a file."""

    shape: tuple[int, ...]
    offset: int

    @property
    def row_bytes(self) -> int:
        """Bytes in a row."""
        return 4 * math.prod(self.shape[1:])


def lay_out_tensors(shapes: Mapping[str, tuple[int, ...]]) -> tuple[bytes, dict[str, TensorPlace]]:
    """Plan a safetensors file of fp32 tensors. Return the bytes before the values, and each tensor's place.

    The bytes are the length of the header, then the header.
    """
    beginning = make_safetensors_header(shapes)
    places, offset = dict[str, TensorPlace](), len(beginning)
    for name, shape in shapes.items():
        places[name] = TensorPlace(tuple(shape), offset)
        offset += 4 * math.prod(shape)
    return beginning, places


def create_empty(path: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Create a safetensors file of full length with a header and zeros. ``write_rows`` writes the values
    later.
    """
    beginning, places = lay_out_tensors(shapes)
    with open(path, "xb") as file:
        file.write(beginning)
        file.truncate(len(beginning) + sum(4 * math.prod(place.shape) for place in places.values()))


def write_rows(descriptor: int, place: TensorPlace, start: int, rows: Tensor) -> None:
    """Write rows of a tensor, from row ``start`` on, from host memory into an open file."""
    data = get_tensor_bytes(rows.detach().float())
    offset = place.offset + start * place.row_bytes
    while data:
        written = os.pwrite(descriptor, data[:_MOST_BYTES], offset)
        data, offset = data[written:], offset + written


def read_rows(descriptor: int, place: TensorPlace, start: int, rows: Tensor) -> None:
    """Read rows of a tensor, from row ``start`` on, into a contiguous fp32 tensor in host memory.

    OSError if the file ends early.
    """
    assert rows.is_contiguous()
    assert rows.dtype == torch.float32
    data = get_tensor_bytes(rows)
    offset = place.offset + start * place.row_bytes
    while data:
        count = os.preadv(descriptor, [data[:_MOST_BYTES]], offset)
        if not count:
            raise OSError("the file ends early")
        data, offset = data[count:], offset + count


def read_places(path: str) -> dict[str, TensorPlace]:
    """Return the place of each tensor in a local file.

    DataError if it is damaged or has types other than fp32.
    """
    try:
        opened: Any = safe_open(path, "pt")  # safe_open also checks that the header fits the file's length
        names = list(opened.keys())
    except SafetensorError as error:
        raise DataError(f"{path}: not a safetensors file: {error}") from None
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = parse_json_text(file.read(length))
    kinds = {header[name]["dtype"] for name in names}
    if kinds - {"F32"}:
        raise DataError(f"{path}: holds tensors of {', '.join(sorted(kinds))}, expected F32")
    return {
        name: TensorPlace(tuple(header[name]["shape"]), 8 + length + header[name]["data_offsets"][0])
        for name in names
    }


def read_safetensors(path: str) -> dict[str, StoredTensor]:
    """Return the tensors of a .safetensors file by name. A local file is mapped into memory, not read."""
    try:
        if storage.is_remote(path):
            tensors = safetensors.torch.load(storage.read_bytes(path))
            return {name: StoredTensor.of(tensor) for name, tensor in tensors.items()}
        with storage.open_input(path) as file:  # raises the usual error for a missing file
            file.read(1)
        opened: Any = safe_open(path.removeprefix("file://"), "pt")
        return {name: _find_tensor(opened, name, path) for name in opened.keys()}  # noqa: SIM118 - no mapping
    except SafetensorError as error:
        raise DataError(f"{path}: not weights that can be read without unpickling: {error}") from None


def read_indexed(path: str) -> dict[str, StoredTensor]:
    """Return the tensors of all files that an index lists. DataError if a file lacks a tensor."""
    try:
        files: Mapping[str, str] = parse_json_text(storage.read_bytes(path))["weight_map"]
        names = sorted(set(files.values()))
        if any("/" in name or "\0" in name or name in ("", ".", "..") for name in names):
            raise ValueError("a file elsewhere, or no name of a file")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{path}: no index of tensors: expected weight_map, file by name") from None
    opened = {name: read_safetensors(storage.join(storage.get_parent(path), name)) for name in names}
    for tensor, name in files.items():
        if tensor not in opened[name]:
            raise DataError(f"{path}: names {tensor} in {name}, which lacks it")
    return {tensor: opened[name][tensor] for tensor, name in files.items()}


def format_index(files: Mapping[str, Mapping[str, tuple[int, ...]]]) -> str:
    """Return the text of a .index.json file, which says which file contains which tensor.

    files: for each file, the shapes of its tensors.
    """
    size = sum(4 * math.prod(shape) for shapes in files.values() for shape in shapes.values())
    places = {tensor: name for name, shapes in files.items() for tensor in shapes}
    return json.dumps({"metadata": {"total_size": size}, "weight_map": places}, indent=1) + "\n"


def _find_tensor(opened: Any, name: str, path: str) -> StoredTensor:
    """Return a tensor of an open safetensors file. DataError for a type or shape that cannot be read."""
    found = opened.get_slice(name)
    kind, shape = found.get_dtype(), tuple(found.get_shape())
    if kind not in _TYPES:
        raise DataError(f"{path}: {name} is of the type {kind}, expected one of {', '.join(_TYPES)}")
    if math.prod(size for size in shape if size) > _LARGEST:
        raise DataError(f"{path}: {name} has shape {list(shape)}, larger than any tensor")
    return StoredTensor(shape, lambda: opened.get_tensor(name))
