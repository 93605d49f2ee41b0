"""Compare a shard's file with its entry in the manifest, which holds its name, size, md5 and counts.

Readers and all commands that check shards use these functions.
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
"""Depth of a shard's check.

size: the file's size. bytes: also its md5. counted: also the number of its examples or packed rows.
examples: only the content md5 of its examples.
"""


def check_shard(
    directory: str, entry: ShardEntry, depth: Depth = "bytes", objective: str | None = None
) -> Misfit | None:
    """Return the first difference between a shard and its manifest entry, or None if they match.

    objective: the examples' objective, needed if they are counted or compared. None to recognise it from the
        file.

    Raises ShardError if the examples have to be decoded and cannot be.
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
    """Compare a shard's md5 and number of examples with its entry. The file is read only once for both."""
    frames = FrameCounter()
    container = find_container_by_name(path)
    is_framed = container is None or container.is_canonical
    misfit = check_file(path, entry.bytes, entry.md5, also=frames.feed if is_framed else None)
    if misfit is not None:
        return misfit
    what, expected = ("examples", entry.examples) if entry.rows is None else ("packed rows", entry.rows)
    try:
        found = frames.count if is_framed else _count_rows_or_examples(path, objective)
    except MissingExtraError:  # the package for this container is missing, so compare only the md5
        return None
    if found == expected:
        return None
    return Misfit(status=f"wrong number of {what}", found=f"{found} {what}", expected=f"{expected} {what}")


def _count_rows_or_examples(path: str, objective: str | None) -> int:
    """Return the number of packed rows of a packed shard, or of examples of any other shard."""
    with open_reader(path, objective=objective) as reader:
        return reader.rows if isinstance(reader, PackReader) else len(reader)


def check_index(directory: str, entry: ShardEntry) -> Misfit | None:
    """Compare a shard's index file with its entry and return the difference.

    The index lists the records of a packed TFRecord file. Returns None if the index matches, or if the shard
    needs no index.
    """
    if (index := make_index_entry(entry)) is None:
        return None
    path = storage.join(directory, index.name)
    if not storage.exists(path):
        return Misfit(status="missing")
    found = compute_file_md5(path)
    return None if found == index.md5 else Misfit(status="wrong md5", found=found, expected=index.md5)


def check_shard_sizes(directory: str, entries: Sequence[ShardEntry]) -> list[Misfit | None]:
    """Compare the file sizes of many shards with their entries, in parallel threads.

    Returns for each entry the difference, or None if the size is right.
    """
    by_path = {storage.join(directory, entry.name): entry for entry in entries}
    return storage.map_paths(list(by_path), lambda path: check_shard(directory, by_path[path], "size"))


@contextmanager
def refuse_writes(file: BinaryIO, path: str) -> Iterator[None]:
    """Raise ShardError at the end of the block if the shard was written to while it was open.

    This error replaces any other error of the block, because a file that is truncated while it is read looks
    damaged. Another process may put a new file at the same path, because the open file stays unchanged.
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
    """Raise ShardError if a file's md5 differs from the expected md5.

    expected: md5 in the manifest. None if there is no manifest, and nothing is checked then.
    """
    if expected and found != expected:
        raise ShardError(
            f"{path}: found md5 {found}, expected {expected}: it was damaged or changed since it was made"
        )
