"""PyTorch's files of tensors, of which nothing is unpickled but tensors and containers.

Local files are mapped, not read: a tensor comes into memory when it is asked for.
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
"""The exceptions of torch and zipfile for a file that is damaged, or is none of theirs."""

_PLAIN_TYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
)

_ARCHIVE = b"PK\3\4"
"""The first bytes of a file of torch.save; older ones are no archives."""

_REMEDY = "where it was made, save its tensors alone: torch.save({'model': checkpoint['model']}, FILE)"


def read_torch(path: str) -> Any:
    """The content of a file of torch.save: tensors in plain containers. DataError for anything else."""
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
        raise _unreadable(path, error, _REMEDY) from None
    except _DAMAGED as error:
        raise _unreadable(path, error) from None
    except OSError as error:  # of the mapping or of torch: it names no file
        raise DataError(f"{path}: cannot be read: {error.strerror or error}; is it truncated?") from None


def _check_archive(file: BinaryIO) -> None:
    """ValueError where a checksum of the file's parts does not fit, of which torch looks at none.

    So too for parts that are compressed, or that share their bytes: torch writes none, and memory for them
    is not bounded by the file.
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


def tensors_of(values: Any, path: str) -> dict[str, StoredTensor]:
    """The tensors of a mapping by name. DataError for anything else."""
    if not isinstance(values, Mapping) or not all(isinstance(item, Tensor) for item in values.values()):
        raise DataError(f"{path}: found {type(values).__name__}, expected tensors by name")
    for name, tensor in values.items():
        check_plain(tensor, str(name), path)
    return {str(name): StoredTensor.of(tensor) for name, tensor in values.items()}


def check_plain(tensor: Tensor, name: str, path: str) -> None:
    """DataError for a tensor that is no dense array of numbers, or is larger than the file.

    A larger one shares its numbers among several places, and takes any amount of memory when it is copied.
    """
    found = _oddity(tensor)
    if found is None:
        wanted, there = tensor.numel() * tensor.element_size(), storage.size(path)
        found = f"of {wanted} bytes, more than the file's {there}" if wanted > there else None
    if found is not None:
        raise DataError(f"{path}: {name} is {found}, expected a dense tensor of numbers")


def _oddity(tensor: Tensor) -> str | None:
    """The kind of a tensor whose memory is no array of numbers, or None for a plain one."""
    kinds = {
        "nested": tensor.is_nested,
        "sparse": tensor.layout is not torch.strided,
        "quantised": tensor.is_quantized,
        "without values (meta)": tensor.is_meta,
        f"of the type {str(tensor.dtype).removeprefix('torch.')}": tensor.dtype not in _PLAIN_TYPES,
        "a view with its sign turned": tensor.is_neg(),
    }
    return next((kind for kind, applies in kinds.items() if applies), None)


def _unreadable(path: str, error: Exception, remedy: str = "") -> DataError:
    """The error for a file that holds more than tensors, or is damaged."""
    found_global = _GLOBAL.search(str(error))
    said = str(error).strip().split("\n")[0] or "it ends early, or is none of torch.save"
    if said.startswith("Weights only load failed"):  # and why torch's default has changed
        said = "it holds no pickle of tensors"
    reason = f"it holds {found_global[1]}" if found_global else said
    found = f"{path}: not weights that can be read without unpickling: {reason}"
    return DataError(f"{found}; {remedy}" if remedy else found)


def _refuse_old_torch(path: str) -> None:
    """DataError with a torch whose ``weights_only`` lets a file run code (before 2.6)."""
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
        raise DataError(
            f"{path}: torch {torch.__version__} cannot read it safely; convert it to model.safetensors "
            "with torch 2.6 or later"
        )
