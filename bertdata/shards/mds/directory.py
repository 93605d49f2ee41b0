"""Write and read directories of MDS shards with any columns, as Mosaic's MDSWriter writes them.

This module converts one sample at a time and supports all types of columns. ``ids.py`` and ``container.py``
are faster, but support only samples of token ids.
"""

from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from itertools import pairwise
from typing import Any

from bertdata.errors import ShardError
from bertdata.io import storage
from bertdata.shards.mds.compression import decompress, find_compression
from bertdata.shards.mds.hashes import compute_hashes
from bertdata.shards.mds.index import (
    LARGEST_SHARD,
    IndexEntry,
    ShardForm,
    StoredFile,
    dump_index,
    find_entry,
    parse_index,
)
from bertdata.shards.mds.names import INDEX_NAME, find_compression_ending
from bertdata.shards.mds.shard_file import decode_sample, divide_by_size, encode_sample, join_shard, read_head

MAX_UNLISTED_BYTES = 1 << 28
"""The largest accepted uncompressed size, in bytes, of a shard that no index lists.

Writers begin a new shard at 2^26 bytes by default.
"""


def write_directory(directory: str, form: ShardForm, samples: Iterable[Mapping[str, Any]]) -> None:
    """Write samples as MDS shards into a directory, with the index that lists the shards.

    All samples are held in memory. Raises ShardError, which names a sample that does not fit.

    form: columns, compression and hashes of the shards.
    samples: values by column.
    """
    encoded = []
    for number, sample in enumerate(samples):
        try:
            encoded.append(encode_sample(sample, form))
        except ValueError as error:
            raise ShardError(f"{directory}: record {number}: {error}") from None
    head = form.dump()
    try:
        starts = divide_by_size(list(map(len, encoded)), head, form.size_limit)
    except ValueError as error:
        raise ShardError(f"{directory}: {error}, over the limit of {form.size_limit}") from None
    entries = []
    for number, (start, stop) in enumerate(pairwise(starts)):
        if sum(map(len, encoded[start:stop])) > LARGEST_SHARD - len(head) - 4 * (stop - start + 2):
            raise ShardError(f"{directory}: shard {number} passes 4 GiB; give a size limit")
        data = join_shard(encoded[start:stop], head)
        entry, stored = pack_shard(f"shard.{number:05}.mds", data, stop - start, form)
        entries.append(entry)
        with storage.open_output(storage.join(directory, entry.stored.basename)) as file:
            file.write(stored)
    with storage.open_output(storage.join(directory, INDEX_NAME)) as file:
        file.write(dump_index(entries))


def pack_shard(name: str, data: bytes, samples: int, form: ShardForm) -> tuple[IndexEntry, bytes]:
    """Return the index entry and the file contents of a shard. They are compressed if ``form`` asks for it.

    data: the uncompressed shard.
    samples: number of samples in it.
    """
    raw, zipped, stored = _describe_file(name, data, form), None, data
    if form.compression is not None:
        compression = find_compression(form.compression)
        stored = compression.compress(data)
        zipped = _describe_file(f"{name}.{compression.ending}", stored, form)
    return IndexEntry(form=form, samples=samples, raw=raw, zipped=zipped), stored


def describe_shard(path: str, form: ShardForm, samples: int) -> IndexEntry:
    """Return the entry of an index for an existing shard, computed from the shard's file."""
    data, name = storage.read_bytes(path), storage.get_base_name(path)
    ending = find_compression_ending(name)
    if ending is None:
        return IndexEntry(form=form, samples=samples, raw=_describe_file(name, data, form))
    raw = _describe_file(name.removesuffix(f".{ending}"), decompress(data, ending, path, LARGEST_SHARD), form)
    return IndexEntry(form=form, samples=samples, raw=raw, zipped=_describe_file(name, data, form))


def _describe_file(name: str, data: bytes, form: ShardForm) -> StoredFile:
    return StoredFile(basename=name, bytes=len(data), hashes=compute_hashes(data, form.hashes))


def read_directory(directory: str) -> Iterator[dict[str, Any]]:
    """Yield all samples of a directory in order, as values by column.

    Raises ShardError, which names the fault.
    """
    where = storage.join(directory, INDEX_NAME)
    for entry in parse_index(storage.read_bytes(where), where):
        yield from read_samples(find_file(directory, entry), entry)


def read_samples(path: str, entry: IndexEntry | None = None) -> Iterator[dict[str, Any]]:
    """Yield all samples of a shard as values by column. The shard's size and hashes are checked first.

    Raises ShardError, which names an unreadable record.

    entry: the shard's entry in the index. None if there is no index.
    """
    file = BytesIO(read_checked_shard(storage.read_bytes(path), path, entry))
    head, data = read_head(file, path), file.getvalue()
    for number in range(len(head)):
        try:
            yield decode_sample(data[head.offsets[number] : head.offsets[number + 1]], head.form)
        except ValueError as error:
            raise ShardError(f"{path}: record {number}: {error}") from None


def find_file(directory: str, entry: IndexEntry) -> str:
    """Return the path of a shard's file.

    If only a copy exists that a data loader has decompressed, return the path of the copy. Raises ShardError
    if there is neither.
    """
    for file in (entry.stored, entry.raw):
        path = storage.join(directory, file.basename)
        if storage.exists(path):
            return path
    missing = storage.join(directory, entry.stored.basename)
    raise ShardError(
        f"{missing}: is missing, {INDEX_NAME} lists it with {entry.samples} samples; copy it again"
    )


def find_listed_entry(path: str) -> IndexEntry | None:
    """Return the shard's entry in the index in its directory.

    Returns None if there is no index, or if it does not list the shard.
    """
    where = storage.join(storage.get_parent(path), INDEX_NAME)
    if not storage.exists(where):
        return None
    return find_entry(parse_index(storage.read_bytes(where), where), storage.get_base_name(path))


def read_checked_shard(
    data: bytes, path: str, entry: IndexEntry | None, most: int = MAX_UNLISTED_BYTES
) -> bytes:
    """Check a shard against its entry in the index and return its bytes, decompressed if necessary.

    Raises ShardError if its size or hashes differ from the entry.

    entry: the shard's entry in the index. None if there is no index.
    most: largest uncompressed size of a compressed shard without an entry.
    """
    ending = find_compression_ending(path)
    if entry is not None and ending is not None:
        _check_file(data, path, entry.stored)
    most = most if entry is None else entry.raw.bytes
    raw = data if ending is None else decompress(data, ending, path, most)
    if entry is not None:
        _check_file(raw, path, entry.raw)
    return raw


def _check_file(data: bytes, path: str, expected: StoredFile) -> None:
    if len(data) != expected.bytes:
        raise ShardError(
            f"{path}: {len(data)} bytes, expected {expected.bytes} by {INDEX_NAME}; copy it again"
        )
    for name, found in compute_hashes(data, expected.hashes).items():
        if found != expected.hashes[name]:
            raise ShardError(
                f"{path}: {name} {found}, expected {expected.hashes[name]} by {INDEX_NAME}; copy it again"
            )
