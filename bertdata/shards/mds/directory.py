"""A directory of MDS shards of any columns: samples written as one MDSWriter does, and read again.

The readable twin of ``ids.py`` and ``container.py``, which handle examples of ids in bulk.
"""

from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from itertools import pairwise
from typing import Any

from bertdata.errors import ShardError
from bertdata.io import storage
from bertdata.shards.mds.compression import decompress, find_compression
from bertdata.shards.mds.hashes import hashes_of
from bertdata.shards.mds.index import (
    LARGEST_SHARD,
    IndexEntry,
    ShardForm,
    StoredFile,
    dump_index,
    find_entry,
    parse_index,
)
from bertdata.shards.mds.names import INDEX_NAME, ending_of
from bertdata.shards.mds.shard_file import cut_by_size, decode_sample, encode_sample, join_shard, read_head

MOST_UNLISTED = 1 << 28
"""Bytes of a compressed shard that no index lists. Writers cut shards at 2^26 by default."""


def write_directory(directory: str, form: ShardForm, samples: Iterable[Mapping[str, Any]]) -> None:
    """Write all samples, held in memory, and the index. ShardError names a sample that does not fit."""
    encoded = []
    for number, sample in enumerate(samples):
        try:
            encoded.append(encode_sample(sample, form))
        except ValueError as error:
            raise ShardError(f"{directory}: record {number}: {error}") from None
    head = form.dump()
    try:
        starts = cut_by_size(list(map(len, encoded)), head, form.size_limit)
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
    """The index's entry of a shard, and the bytes of its file, compressed where the form asks for it."""
    raw, zipped, stored = _stored(name, data, form), None, data
    if form.compression is not None:
        compression = find_compression(form.compression)
        stored = compression.compress(data)
        zipped = _stored(f"{name}.{compression.ending}", stored, form)
    return IndexEntry(form=form, samples=samples, raw=raw, zipped=zipped), stored


def describe_shard(path: str, form: ShardForm, samples: int) -> IndexEntry:
    """The index's entry of a shard that is there, hashed and decompressed anew."""
    data, name = storage.read_bytes(path), storage.base_name(path)
    ending = ending_of(name)
    if ending is None:
        return IndexEntry(form=form, samples=samples, raw=_stored(name, data, form))
    raw = _stored(name.removesuffix(f".{ending}"), decompress(data, ending, path, LARGEST_SHARD), form)
    return IndexEntry(form=form, samples=samples, raw=raw, zipped=_stored(name, data, form))


def _stored(name: str, data: bytes, form: ShardForm) -> StoredFile:
    return StoredFile(basename=name, bytes=len(data), hashes=hashes_of(data, form.hashes))


def read_directory(directory: str) -> Iterator[dict[str, Any]]:
    """All samples of a directory, in order, each with its values by column. ShardError names the fault."""
    where = storage.join(directory, INDEX_NAME)
    for entry in parse_index(storage.read_bytes(where), where):
        yield from read_samples(find_file(directory, entry), entry)


def read_samples(path: str, entry: IndexEntry | None = None) -> Iterator[dict[str, Any]]:
    """All samples of one shard, held against its entry. ShardError names the record that cannot be read."""
    file = BytesIO(checked_bytes(storage.read_bytes(path), path, entry))
    head, data = read_head(file, path), file.getvalue()
    for number in range(len(head)):
        try:
            yield decode_sample(data[head.offsets[number] : head.offsets[number + 1]], head.form)
        except ValueError as error:
            raise ShardError(f"{path}: record {number}: {error}") from None


def find_file(directory: str, entry: IndexEntry) -> str:
    """The path of a shard as it was written, or as a loader has decompressed it. ShardError without."""
    for file in (entry.stored, entry.raw):
        path = storage.join(directory, file.basename)
        if storage.exists(path):
            return path
    missing = storage.join(directory, entry.stored.basename)
    raise ShardError(
        f"{missing}: is missing, {INDEX_NAME} lists it with {entry.samples} samples; copy it again"
    )


def entry_beside(path: str) -> IndexEntry | None:
    """The entry of a shard in the index beside it. None without an index, or where it does not list it."""
    where = storage.join(storage.parent(path), INDEX_NAME)
    if not storage.exists(where):
        return None
    return find_entry(parse_index(storage.read_bytes(where), where), storage.base_name(path))


def checked_bytes(data: bytes, path: str, entry: IndexEntry | None, most: int = MOST_UNLISTED) -> bytes:
    """The shard's bytes, decompressed. ShardError where size or a hash is not what its entry says.

    most: bytes of a compressed shard without an entry.
    """
    ending = ending_of(path)
    if entry is not None and ending is not None:
        _check(data, path, entry.stored)
    most = most if entry is None else entry.raw.bytes
    raw = data if ending is None else decompress(data, ending, path, most)
    if entry is not None:
        _check(raw, path, entry.raw)
    return raw


def _check(data: bytes, path: str, expected: StoredFile) -> None:
    if len(data) != expected.bytes:
        raise ShardError(
            f"{path}: {len(data)} bytes, expected {expected.bytes} by {INDEX_NAME}; copy it again"
        )
    for name, found in hashes_of(data, expected.hashes).items():
        if found != expected.hashes[name]:
            raise ShardError(
                f"{path}: {name} {found}, expected {expected.hashes[name]} by {INDEX_NAME}; copy it again"
            )
