"""Comparison of a shard's file with its entry, for resume, dry run, verify, discover and readers."""

from collections.abc import Sequence
from typing import Literal

from bertdata.dataset.manifest import ShardEntry
from bertdata.errors import ShardError
from bertdata.io import storage
from bertdata.io.file_check import Misfit, check_file
from bertdata.shards.content import content_md5

Depth = Literal["size", "bytes", "examples"]
"""Extent of a check: the file's size; its md5 too; or the content md5 of its examples instead of both."""


def check_shard(
    directory: str, entry: ShardEntry, depth: Depth = "bytes", objective: str | None = None
) -> Misfit | None:
    """The first difference between a shard in the directory and its entry; None where it fits.

    objective: of the examples, where they are to be compared; None: as the file's columns tell.
    ShardError where the examples are to be compared and cannot be read.
    """
    path = storage.join(directory, entry.name)
    if depth != "examples":
        return check_file(path, entry.bytes, entry.md5, size_only=depth == "size")
    if not storage.exists(path):
        return Misfit(status="missing")
    found = content_md5(path, None, objective)
    if found == entry.content_md5:
        return None
    return Misfit(status="wrong content md5", found=found, expected=entry.content_md5)


def check_sizes(directory: str, entries: Sequence[ShardEntry]) -> list[Misfit | None]:
    """The sizes of many shards, compared at once: for each None, or the difference."""
    by_path = {storage.join(directory, entry.name): entry for entry in entries}
    return storage.each(list(by_path), lambda path: check_shard(directory, by_path[path], "size"))


def refuse_changed(path: str, found: str, expected: str | None) -> None:
    """ShardError where a shard that was read has another md5 than its entry; None: it has no entry."""
    if expected and found != expected:
        raise ShardError(
            f"{path}: found md5 {found}, expected {expected}: it was damaged or changed since it was made"
        )
