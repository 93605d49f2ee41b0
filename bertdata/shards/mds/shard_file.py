"""The file format of an MDS shard.

A shard's file has these parts. All integers are little-endian::

    u32 n; u32 offsets[n + 1] from the file's start; JSON (columns and types); n samples
    a sample: the u32 size of each column whose size varies, then the columns
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, BinaryIO

import numpy as np

from bertdata.errors import ShardError
from bertdata.examples.columns import Array
from bertdata.io.json_text import parse_json_text
from bertdata.shards.mds.index import LARGEST_SHARD, ShardForm, parse_form

_WORD = 4


def compute_head_size(form: bytes) -> int:
    """Return how many bytes Mosaic's writer counts for a shard without samples, towards the limit of its
    size.

    form: columns, compression and hashes of the shard as JSON.
    """
    return 2 * _WORD + len(form)


def encode_head(sizes: Array, form: bytes) -> bytes:
    """Return the part of a shard's file that comes before its samples.

    sizes: size of each sample in bytes, in total at most LARGEST_SHARD.
    form: columns, compression and hashes of the shard as JSON.
    """
    offsets = np.cumsum(np.concatenate([[0], np.asarray(sizes, np.int64)]))
    offsets += compute_head_size(form) + _WORD * len(sizes)
    assert offsets[-1] <= LARGEST_SHARD
    return len(sizes).to_bytes(_WORD, "little") + offsets.astype("<u4").tobytes() + form


def encode_sample(sample: Any, form: ShardForm) -> bytes:
    """Return the bytes of a sample. Raises ValueError, which names a column whose value does not fit.

    sample: values by column.
    """
    kinds, sizes, data = form.find_column_types(), [], []
    for name, kind in zip(form.names, kinds, strict=True):
        try:
            datum = kind.encode(sample[name])
        except KeyError:
            raise ValueError(f"column {name} is missing") from None
        except ValueError as error:
            raise ValueError(f"column {name}: {error}") from None
        if kind.size is None:
            sizes.append(len(datum))
        data.append(datum)
    return np.array(sizes, "<u4").tobytes() + b"".join(data)


def decode_sample(data: bytes, form: ShardForm) -> dict[str, Any]:
    """Return the values of a sample by column.

    Raises ValueError, which names a column whose bytes do not fit.
    """
    kinds = form.find_column_types()
    varying = sum(kind.size is None for kind in kinds)
    if len(data) < _WORD * varying:
        raise ValueError(f"{len(data)} bytes, expected {_WORD * varying} or more")
    free = iter(np.frombuffer(data, "<u4", varying).tolist())
    sizes = [next(free) if kind.size is None else kind.size for kind in kinds]
    ends = list(accumulate(sizes, initial=_WORD * varying))
    if ends[-1] != len(data):
        raise ValueError(f"{len(data)} bytes, expected {ends[-1]} by the sizes of its columns")
    found = {}
    for name, kind, start, stop in zip(form.names, kinds, ends, ends[1:], strict=False):
        try:
            found[name] = kind.decode(data[start:stop])
        except ValueError as error:
            raise ValueError(f"column {name}: {error}") from None
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardHead:
    """The part of a shard's file that comes before its samples.

    offsets: byte offset of each sample, followed by the file's size.
    """

    form: ShardForm
    offsets: Array

    def __len__(self) -> int:
        return len(self.offsets) - 1


def read_head(file: BinaryIO, name: str) -> ShardHead:
    """Read the part of a seekable shard file that comes before its samples.

    Raises ShardError if it is damaged or truncated.
    """
    size = file.seek(0, 2)
    file.seek(0)
    number = int.from_bytes(_read_exactly(file, _WORD, name, size), "little")
    if _WORD * (number + 2) > size:
        raise ShardError(f"{name}: {size} bytes, too few for its {number} samples; it is truncated or no MDS")
    offsets = np.frombuffer(_read_exactly(file, _WORD * (number + 1), name, size), "<u4").astype(np.int64)
    place = _WORD * (number + 2)
    # Offsets must not descend, and must lie between the end of the offset table and the end of the file.
    # Otherwise later code would read or allocate arbitrary ranges.
    falls = np.flatnonzero(np.diff(offsets, prepend=place) < 0)
    if len(falls):
        at = int(falls[0])
        before = offsets[at - 1] if at else place
        raise ShardError(f"{name}: record {at}: offset {offsets[at]}, expected {before} or more")
    if offsets[-1] != size:
        raise ShardError(
            f"{name}: {size} bytes, expected {offsets[-1]} by its offsets; it is truncated or damaged"
        )
    try:
        value = parse_json_text(_read_exactly(file, int(offsets[0]) - place, name, size))
    except ValueError as error:
        raise ShardError(f"{name}: its description is no JSON: {error}; it is damaged, or no MDS") from None
    return ShardHead(form=parse_form(value, name), offsets=offsets)


def _read_exactly(file: BinaryIO, count: int, name: str, size: int) -> bytes:
    data = file.read(count)
    if len(data) != count:
        raise ShardError(f"{name}: {size} bytes, expected {count} more at its start; it is truncated")
    return data


def divide_by_size(sizes: Sequence[int] | Array, form: bytes, limit: int | None) -> list[int]:
    """Divide samples among shards as MDSWriter does. Return the index of each shard's first sample.

    The last number of the result is the number of samples. A shard ends before the sample with which it would
    exceed the limit. A sample larger than the limit gets a shard for itself. Raises ValueError if this is the
    first sample, because MDSWriter would then write an empty shard.

    sizes: size of each sample in bytes.
    form: columns, compression and hashes of the shards as JSON.
    limit: largest size of a shard in bytes. None writes a single shard.
    """
    ends = np.cumsum(np.asarray(sizes, np.int64) + _WORD)
    starts = [0]
    if limit is None or not len(ends):
        return [0, len(ends)] if len(ends) else [0]
    room = limit - compute_head_size(form)
    if int(ends[0]) > room:
        raise ValueError(
            f"the first sample alone makes a shard of {int(ends[0]) + compute_head_size(form)} bytes"
        )
    while starts[-1] < len(ends):
        done = int(ends[starts[-1] - 1]) if starts[-1] else 0
        stop = int(np.searchsorted(ends, done + room, side="right"))
        starts.append(max(stop, starts[-1] + 1))
    return starts


def join_shard(samples: Iterable[bytes], form: bytes) -> bytes:
    """Return the contents of a shard's file.

    samples: the bytes of each sample.
    form: columns, compression and hashes of the shard as JSON.
    """
    held = list(samples)
    return encode_head(np.array([len(sample) for sample in held], np.int64), form) + b"".join(held)
