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
from trainer.model.checkpoints.checkpoint import StoredTensor

_GLOBAL = re.compile(r"Unsupported global: GLOBAL (\S+)")
_DAMAGED = (
    *(RuntimeError, ValueError, TypeError, LookupError, AttributeError, EOFError, OverflowError),
    *(AssertionError, struct.error, zipfile.BadZipFile, zlib.error),
)
"""The exceptions of torch and zipfile for a file that is damaged, or is none of theirs."""

_REMEDY = "where it was made, save its tensors alone: torch.save({'model': checkpoint['model']}, FILE)"


def read_torch(path: str) -> Any:
    """The content of a file of torch.save: tensors in plain containers. DataError for anything else."""
    _refuse_old_torch(path)
    try:
        with storage.open_input(path) as file:
            is_archive = zipfile.is_zipfile(file)
            if is_archive:
                _check_archive(file)
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


def _check_archive(file: BinaryIO) -> None:
    """ValueError where a checksum of the file's parts does not fit, of which torch looks at none."""
    with zipfile.ZipFile(file) as archive:
        if (part := archive.testzip()) is not None:
            raise ValueError(f"the checksum of {part} does not fit: damaged")


def tensors_of(values: Any, path: str) -> dict[str, StoredTensor]:
    """The tensors of a mapping by name; DataError where it is none."""
    if not isinstance(values, Mapping) or not all(isinstance(item, Tensor) for item in values.values()):
        raise DataError(f"{path}: found {type(values).__name__}, expected tensors by name")
    return {str(name): StoredTensor.of(tensor) for name, tensor in values.items()}


def _unreadable(path: str, error: Exception, remedy: str = "") -> DataError:
    """The error for a file that holds more than tensors, or is damaged."""
    found_global = _GLOBAL.search(str(error))
    reason = f"it holds {found_global[1]}" if found_global else str(error).strip().split("\n")[0]
    found = f"{path}: not weights that can be read without unpickling: {reason}"
    return DataError(f"{found}; {remedy}" if remedy else found)


def _refuse_old_torch(path: str) -> None:
    """DataError with a torch whose ``weights_only`` lets a file run code (before 2.6)."""
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
        raise DataError(
            f"{path}: torch {torch.__version__} cannot read it safely; convert it to model.safetensors "
            "with torch 2.6 or later"
        )
