"""Check how an HDF5 dataset is stored, before it is read.

A hostile HDF5 file can do harm in two ways. Its datasets can refer to other files, which the HDF5 library
opens by itself. A few bytes can also describe a dataset of any size. No shard needs such datasets. A shard's
data must be in the file itself, be completely written, and have a plausible size compared with the file.
"""

from itertools import product
from math import prod
from typing import Any

from bertdata.errors import ShardError

MAX_EXPANSION = 1100
"""The largest plausible ratio of the data's size to the file's size.

Deflate compresses best of the filters in use, and reaches 1,032.
"""
MAX_CHUNK_BYTES = 64 * 1024**2
"""A chunk that has at most this many bytes in memory is always accepted."""
CHUNK_EXPANSION = 16
"""A larger chunk is accepted if its size in memory is at most this many times the file's size."""


def open_hard_link(group: Any, field: str, name: str) -> Any:
    """Return the object with this name in the group, or None.

    Raises ShardError for a soft or external link.
    """
    import h5py

    link = group.get(field, getlink=True, default=None)
    if link is None:
        return None
    if not isinstance(link, h5py.HardLink):
        raise ShardError(f"{name}: {field} is a link to another place, expected the dataset itself")
    return group[field]


def check_storage(datasets: dict[str, Any], size: int, name: str) -> None:
    """Raise ShardError unless all values of the datasets are in the file itself.

    size: the file's size in bytes.
    """
    for field, dataset in datasets.items():
        if dataset.is_virtual:
            raise ShardError(f"{name}: {field} is a virtual dataset, expected its values in this file")
        if dataset.external:
            raise ShardError(f"{name}: {field} lies in an external file, expected its values in this file")
    for field, dataset in datasets.items():
        _check_allocated(field, dataset, size, name)
    stored = sum(dataset.id.get_storage_size() for dataset in datasets.values())
    if stored > size:
        raise ShardError(f"{name}: its datasets claim {stored:,} bytes of a file of {size:,}")


def _check_allocated(field: str, dataset: Any, size: int, name: str) -> None:
    """Raise ShardError if a dataset is too large for a file of ``size`` bytes, or not completely written."""
    # A few damaged bytes can describe terabytes. All limits are therefore checked before HDF5 allocates
    # memory.
    needed = prod(dataset.shape) * dataset.dtype.itemsize
    if needed > MAX_EXPANSION * size:
        raise ShardError(
            f"{name}: {field} has shape {dataset.shape}, more than a file of {size:,} bytes can hold"
        )
    if dataset.chunks is None:
        stored = dataset.id.get_storage_size()
        if stored < needed:
            raise ShardError(f"{name}: {field} has {stored:,} bytes of its {needed:,}, expected all written")
        return
    chunk = prod(dataset.chunks) * dataset.dtype.itemsize
    if chunk > max(MAX_CHUNK_BYTES, CHUNK_EXPANSION * size):
        raise ShardError(f"{name}: {field} has chunks of {chunk:,} bytes in a file of {size:,}")
    expected = prod(-(-length // step) for length, step in zip(dataset.shape, dataset.chunks, strict=True))
    if expected > size:
        raise ShardError(f"{name}: {field} has {expected:,} chunks in a file of {size:,} bytes")
    _check_chunks(field, dataset, name)


def _check_chunks(field: str, dataset: Any, name: str) -> None:
    """Raise ShardError for the first record whose chunk is missing, because HDF5 silently reads zeros
    for it.
    """
    found: set[tuple[int, ...]] = set()
    dataset.id.chunk_iter(lambda chunk: found.add(tuple(chunk.chunk_offset)))
    steps = zip(dataset.shape, dataset.chunks, strict=True)
    for offset in product(*(range(0, length, step) for length, step in steps)):
        if offset not in found:
            first = offset[0]
            last = min(first + dataset.chunks[0], dataset.shape[0]) - 1
            raise ShardError(
                f"{name}: record {first}: {field} of records {first} to {last} cannot be read, "
                "expected every chunk written"
            )
