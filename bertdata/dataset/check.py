"""Comparison of a shard's file with its manifest entry, which contains its name, size, md5 and counts.

All commands that read or check shards use these functions.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, Literal

from bertdata.dataset.manifest import ShardEntry, make_index_entry
from bertdata.errors import DataError, MissingExtraError, ShardError
from bertdata.io import storage
from bertdata.io.file_check import Misfit, check_file, compute_file_md5
from bertdata.shards.containers import find_container_by_name, open_reader
from bertdata.shards.content import compute_content_md5
from bertdata.shards.framing import FrameCounter
from bertdata.shards.packed.packs import PackReader

Depth = Literal["size", "bytes", "counted", "examples"]
"""Thoroughness with which a shard is compared with its manifest entry.

size compares only the size of the file. bytes also compares its md5. counted also compares the number of its
examples or packed rows. examples compares only the md5 of its examples, which does not depend on the file
format.
"""


def check_shard(
    directory: str, entry: ShardEntry, depth: Depth = "bytes", objective: str | None = None
) -> Misfit | None:
    """Compare a shard with its manifest entry and return the first difference, or None if they match.

    depth: how thoroughly the shard is compared.
    objective: objective of the examples, which is needed to count or compare them. None recognises it from
        the file.

    Raises ShardError if the examples must be decoded and this fails.
    """
    path = storage.join(directory, entry.name)
    if depth == "counted":
        return _check_counted(path, entry, objective)
    if depth != "examples":
        return check_file(path, entry.bytes, entry.md5, size_only=depth == "size")
    if not storage.exists(path):
        return Misfit(status="missing")
    found = compute_content_md5(path, None, objective)
    if found == entry.content_md5:
        return None
    return Misfit(status="wrong content md5", found=found, expected=entry.content_md5)


def _check_counted(path: str, entry: ShardEntry, objective: str | None) -> Misfit | None:
    """Compare the md5 and the number of examples of a shard with its entry. The file is read only once."""
    frames = FrameCounter()
    container = find_container_by_name(path)
    is_framed = container is None or container.is_canonical
    misfit = check_file(path, entry.bytes, entry.md5, also=frames.feed if is_framed else None)
    if misfit is not None:
        return misfit
    what, expected = ("examples", entry.examples) if entry.rows is None else ("packed rows", entry.rows)
    try:
        found = frames.count if is_framed else _count_rows_or_examples(path, objective)
    # the package that reads this file format is not installed, so only the md5 is compared
    except MissingExtraError:
        return None
    if found == expected:
        return None
    return Misfit(status=f"wrong number of {what}", found=f"{found} {what}", expected=f"{expected} {what}")


def _count_rows_or_examples(path: str, objective: str | None) -> int:
    """Return the number of packed rows if the shard is packed, otherwise the number of its examples."""
    with open_reader(path, objective=objective) as reader:
        return reader.rows if isinstance(reader, PackReader) else len(reader)


def check_index(directory: str, entry: ShardEntry) -> Misfit | None:
    """Compare the index file of a shard with the shard's entry and return the difference.

    The index lists where the records of a packed TFRecord file begin. Returns None if the index matches, or
    if the shard needs no index.
    """
    if (index := make_index_entry(entry)) is None:
        return None
    path = storage.join(directory, index.name)
    if not storage.exists(path):
        return Misfit(status="missing")
    found = compute_file_md5(path)
    return None if found == index.md5 else Misfit(status="wrong md5", found=found, expected=index.md5)


def check_shard_sizes(directory: str, entries: Sequence[ShardEntry]) -> list[Misfit | None]:
    """Compare the file sizes of many shards with their manifest entries, in parallel threads.

    Returns one item for each entry: the difference, or None if the size is right.
    """
    by_path = {storage.join(directory, entry.name): entry for entry in entries}
    return storage.map_paths(list(by_path), lambda path: check_shard(directory, by_path[path], "size"))


@contextmanager
def refuse_writes(file: BinaryIO, path: str) -> Iterator[None]:
    """Raise ShardError at the end of the block if the shard's file was written to while it was open.

    This error replaces any other error of the block, because a file that is shortened while it is read looks
    damaged. It is allowed that another file is moved to the same path, because this does not change the open
    file.
    """
    before = os.fstat(file.fileno())
    try:
        yield
    except (DataError, EOFError, ValueError):
        _refuse_written(file, path, before)
        raise
    _refuse_written(file, path, before)


def _refuse_written(file: BinaryIO, path: str, before: os.stat_result) -> None:
    """Raise ShardError if the file has changed since ``before``."""
    now = os.fstat(file.fileno())
    if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise ShardError(
            f"{path}: was changed while it was being read: it had {before.st_size} bytes and now has "
            f"{now.st_size}; run the command again when nothing else writes to it"
        )


def refuse_changed(path: str, found: str, expected: str | None) -> None:
    """Raise ShardError if the md5 of a file is not the expected md5.

    found: the md5 of the file.
    expected: the md5 in the manifest. None if there is no manifest. Nothing is then checked.
    """
    if expected and found != expected:
        raise ShardError(
            f"{path}: found md5 {found}, expected {expected}: it was damaged or changed since it was made"
        )
