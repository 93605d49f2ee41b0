"""Comparison of a shard's file with its entry, for resume, dry run, verify, discover and readers."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, Literal

from bertdata.dataset.manifest import ShardEntry, index_entry
from bertdata.errors import DataError, MissingExtraError, ShardError
from bertdata.io import storage
from bertdata.io.file_check import Misfit, check_file, file_md5
from bertdata.shards.containers import container_named, open_reader
from bertdata.shards.content import content_md5
from bertdata.shards.framing import FrameCounter
from bertdata.shards.packed.packs import PackReader

Depth = Literal["size", "bytes", "counted", "examples"]
"""Extent of a check: the file's size; its md5 too; the number of its examples, or packed rows, too; or,
instead of all three, the content md5 of its examples."""


def check_shard(
    directory: str, entry: ShardEntry, depth: Depth = "bytes", objective: str | None = None
) -> Misfit | None:
    """The first difference between a shard in the directory and its entry. None where it fits.

    objective: of the examples, where they are to be compared or counted; None: as the file's columns
    tell. ShardError where the examples are to be compared or counted and cannot be read.
    """
    path = storage.join(directory, entry.name)
    if depth == "counted":
        return _check_counted(path, entry, objective)
    if depth != "examples":
        return check_file(path, entry.bytes, entry.md5, size_only=depth == "size")
    if not storage.exists(path):
        return Misfit(status="missing")
    found = content_md5(path, None, objective)
    if found == entry.content_md5:
        return None
    return Misfit(status="wrong content md5", found=found, expected=entry.content_md5)


def _check_counted(path: str, entry: ShardEntry, objective: str | None) -> Misfit | None:
    frames = FrameCounter()
    container = container_named(path)
    is_framed = container is None or container.is_canonical
    misfit = check_file(path, entry.bytes, entry.md5, also=frames.feed if is_framed else None)
    if misfit is not None:
        return misfit
    what, expected = ("examples", entry.examples) if entry.rows is None else ("packed rows", entry.rows)
    try:
        found = frames.count if is_framed else _count(path, objective)
    except MissingExtraError:  # the md5 can be checked without
        return None
    if found == expected:
        return None
    return Misfit(status=f"wrong number of {what}", found=f"{found} {what}", expected=f"{expected} {what}")


def _count(path: str, objective: str | None) -> int:
    """The examples of a shard, or its packed rows."""
    with open_reader(path, objective=objective) as reader:
        return reader.rows if isinstance(reader, PackReader) else len(reader)


def check_index(directory: str, entry: ShardEntry) -> Misfit | None:
    """The difference between the index of a shard's records and its entry. None where it fits or has none."""
    if (index := index_entry(entry)) is None:
        return None
    path = storage.join(directory, index.name)
    if not storage.exists(path):
        return Misfit(status="missing")
    found = file_md5(path)
    return None if found == index.md5 else Misfit(status="wrong md5", found=found, expected=index.md5)


def check_shard_sizes(directory: str, entries: Sequence[ShardEntry]) -> list[Misfit | None]:
    """The sizes of many shards, compared at once: for each None, or the difference."""
    by_path = {storage.join(directory, entry.name): entry for entry in entries}
    return storage.each(list(by_path), lambda path: check_shard(directory, by_path[path], "size"))


@contextmanager
def unwritten(file: BinaryIO, path: str) -> Iterator[None]:
    """The time in which nobody may write to an open shard. ShardError at its end where somebody did.

    That counts before any other fault, since a shard that was cut looks damaged. Another file that takes the
    path's place is no fault: the open one stays as it is.
    """
    before = os.fstat(file.fileno())
    try:
        yield
    except (DataError, EOFError, ValueError):
        _refuse_written(file, path, before)
        raise
    _refuse_written(file, path, before)


def _refuse_written(file: BinaryIO, path: str, before: os.stat_result) -> None:
    now = os.fstat(file.fileno())
    if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise ShardError(
            f"{path}: was changed while it was being read: it had {before.st_size} bytes and now has "
            f"{now.st_size}; run the command again when nothing else writes to it"
        )


def refuse_changed(path: str, found: str, expected: str | None) -> None:
    """ShardError where a shard that was read has another md5 than its entry. None: it has no entry."""
    if expected and found != expected:
        raise ShardError(
            f"{path}: found md5 {found}, expected {expected}: it was damaged or changed since it was made"
        )
