"""Safe reading of PyTorch's files: only tensors and plain containers are unpickled.

Local files are mapped into memory. A tensor is loaded when it is used.
"""

import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pickle import UnpicklingError
from typing import Any, BinaryIO

import torch
from torch import Tensor

from bertdata.errors import DataError
from bertdata.io import storage
from trainer.checkpoints.any_checkpoint import StoredTensor

_GLOBAL = re.compile(r"Unsupported global: GLOBAL (\S+)")
_DAMAGED = (
    *(RuntimeError, ValueError, TypeError, LookupError, AttributeError, EOFError, OverflowError),
    *(AssertionError, struct.error, zipfile.BadZipFile, zlib.error),
)
"""Exceptions of torch and zipfile for a file that is damaged or has another format."""

_PLAIN_TYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
)

_ARCHIVE = b"PK\3\4"
"""First bytes of a zip archive, in which torch.save stores a file. Before torch 1.6 it had another format."""

_REMEDY = "where it was made, save its tensors alone: torch.save({'model': checkpoint['model']}, FILE)"


def read_torch(path: str) -> Any:
    """Return the content of a file that torch.save wrote: tensors in dictionaries and lists.

    DataError for a file with other objects, which could run code.
    """
    _refuse_old_torch(path)
    try:
        with storage.open_input(path) as file:
            is_archive = zipfile.is_zipfile(file)
            file.seek(0)
            if is_archive:
                _check_archive(file)
            elif file.read(len(_ARCHIVE)) == _ARCHIVE:
                raise DataError(f"{path}: is truncated: an archive of torch.save without its end")
            is_mapped = is_archive and not storage.is_remote(path)
            file.seek(0)
            source: Any = path.removeprefix("file://") if is_mapped else file
            return torch.load(
                source, map_location=lambda tensor, _: tensor, weights_only=True, mmap=is_mapped or None
            )
    except UnpicklingError as error:
        raise _make_unreadable_error(path, error, _REMEDY) from None
    except _DAMAGED as error:
        raise _make_unreadable_error(path, error) from None
    except OSError as error:  # raised by mmap or torch, without the file's name
        raise DataError(f"{path}: cannot be read: {error.strerror or error}; is it truncated?") from None


def _check_archive(file: BinaryIO) -> None:
    """Raise ValueError if a checksum of the archive is wrong, since torch does not check them.

    Archives with compressed or overlapping parts are refused too. torch never writes them, and they could
    need far more memory than the file's size.
    """
    size = file.seek(0, 2)
    with zipfile.ZipFile(file) as archive:
        parts = archive.infolist()
        if any(part.compress_type != zipfile.ZIP_STORED for part in parts):
            raise ValueError("it is a compressed archive, expected one as torch.save writes it")
        if sum(part.file_size for part in parts) > size:
            raise ValueError("its parts are larger than the file")
        if (part := archive.testzip()) is not None:
            raise ValueError(f"the checksum of {part} does not fit: damaged")


def collect_tensors(values: Any, path: str) -> dict[str, StoredTensor]:
    """Return the mapping as a dictionary of tensors by name. DataError if it is not a mapping from texts to
    tensors.
    """
    if not isinstance(values, Mapping) or not all(isinstance(item, Tensor) for item in values.values()):
        raise DataError(f"{path}: found {type(values).__name__}, expected tensors by name")
    for name, tensor in values.items():
        check_plain(tensor, str(name), path)
    return {str(name): StoredTensor.of(tensor) for name, tensor in values.items()}


def check_plain(tensor: Tensor, name: str, path: str) -> None:
    """Raise DataError for a tensor that is not a dense array of numbers, or is larger than the file.

    A damaged or hostile file can describe a tensor that reads the same bytes repeatedly. A copy of such a
    tensor could need any amount of memory.
    """
    found = _find_unusual_property(tensor)
    if found is None:
        wanted, there = tensor.numel() * tensor.element_size(), storage.read_size(path)
        found = f"of {wanted} bytes, more than the file's {there}" if wanted > there else None
    if found is not None:
        raise DataError(f"{path}: {name} is {found}, expected a dense tensor of numbers")


def _find_unusual_property(tensor: Tensor) -> str | None:
    """Return text about what makes a tensor unusual, such as sparse, or None for a plain array of numbers."""
    kinds = {
        "nested": tensor.is_nested,
        "sparse": tensor.layout is not torch.strided,
        "quantised": tensor.is_quantized,
        "without values (meta)": tensor.is_meta,
        f"of the type {str(tensor.dtype).removeprefix('torch.')}": tensor.dtype not in _PLAIN_TYPES,
        "a view with its sign turned": tensor.is_neg(),
    }
    return next((kind for kind, applies in kinds.items() if applies), None)


def _make_unreadable_error(path: str, error: Exception, remedy: str = "") -> DataError:
    """Return the error for a file that is damaged or contains more than tensors."""
    found_global = _GLOBAL.search(str(error))
    said = str(error).strip().split("\n")[0] or "it ends early, or is none of torch.save"
    # torch's message continues with advice about its default, which does not help here
    if said.startswith("Weights only load failed"):
        said = "it holds no pickle of tensors"
    reason = f"it holds {found_global[1]}" if found_global else said
    found = f"{path}: not weights that can be read without unpickling: {reason}"
    return DataError(f"{found}; {remedy}" if remedy else found)


def _refuse_old_torch(path: str) -> None:
    """Raise DataError for torch before 2.6, whose ``weights_only`` can let a file run code."""
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
        raise DataError(
            f"{path}: torch {torch.__version__} cannot read it safely; convert it to model.safetensors "
            "with torch 2.6 or later"
        )
