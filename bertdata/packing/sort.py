"""Examples of a few shards sorted into files by the bucket of their packed row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from bertdata.dataset.check import refuse_changed
from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.dataset.sorted_runs import Placed, SortedExamples, write_runs
from bertdata.errors import ShardError
from bertdata.examples.columns import Array, lengths
from bertdata.io import storage
from bertdata.io.file_check import file_md5s
from bertdata.io.scratch_files import ScratchFiles
from bertdata.packing.job import PackJob
from bertdata.packing.pack_plan import Histogram
from bertdata.packing.placement import Numbering, RowPlaces

PLACE_BITS = 16
"""Bits of a key that hold the place in the row; those above hold the row in the bucket."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RowSortTask:
    """Sort the examples of consecutive shards.

    source: these shards alone; before: examples by length in all shards before them; counts: in each of them.
    """

    job: PackJob
    number: int
    source: OpenedDataset
    before: Histogram
    counts: tuple[Histogram, ...]

    @property
    def scratch(self) -> ScratchFiles:
        job = self.job
        return ScratchFiles(
            commit=job.dataset.commit,
            name=f"{self.number:05}",
            source=self.source.digest,
            folder=job.folder,
        )


def sort_by_row(task: RowSortTask) -> SortedExamples:
    """Sort the task's examples, or keep the files that an earlier run made of the same shards.

    ShardError where a shard's examples are not those that its lengths say.
    """
    [found] = sort_together([task])
    return found


def sort_together(tasks: Sequence[RowSortTask]) -> list[SortedExamples]:
    """``sort_by_row`` of each task. The md5s of their shards are checked side by side."""
    kept = [task.scratch.kept() for task in tasks]
    left = [task for task, files in zip(tasks, kept, strict=True) if files is None]
    checked = iter(check_side_by_side([shard for task in left for shard in task.source.shards]))
    found = []
    for task, files in zip(tasks, kept, strict=True):
        if files is None:
            shards = tuple(islice(checked, len(task.source.shards)))
            task = replace(task, source=replace(task.source, shards=shards))
            paths = write_runs(task.scratch, len(task.job.cuts.buckets) - 1, _placed(task))
        else:
            paths = files.paths
        found.append(SortedExamples.of(task.source, paths, is_kept=files is not None))
    return found


def _placed(task: RowSortTask) -> Iterator[Placed]:
    """The task's examples with bucket and key. ShardError where they are not those that the lengths say."""
    placement, numbering = task.job.placement(), Numbering(task.before)
    for shard, expected in zip(task.source.shards, task.counts, strict=True):
        found = np.zeros_like(expected)
        for batch in task.source.batches(shard):
            tokens = lengths(batch.ends)
            found += np.bincount(tokens, minlength=len(found))
            if (found > expected).any():
                raise _other_lengths(shard, found, expected)
            which, keys = _bucket_keys(task, placement.find(tokens, numbering.add(tokens)))
            yield batch, which, keys
        if (found != expected).any():
            raise _other_lengths(shard, found, expected)


def _bucket_keys(task: RowSortTask, places: RowPlaces) -> tuple[Array, Array]:
    """The number of each example's bucket, and its key there."""
    buckets, rows = task.job.cuts.buckets, places.rows
    which = np.searchsorted(buckets, rows, side="right") - 1
    keys = ((rows - buckets[which]) << PLACE_BITS) | places.places
    return which, keys.astype(np.uint64)


def _other_lengths(shard: Shard, found: Histogram, expected: Histogram) -> ShardError:
    length = int(np.argmax(found != expected))
    return ShardError(
        f"{shard.path}: holds {found[length]} examples of {length} tokens or more, but its lengths in "
        f"{shard.lengths_path} say {expected[length]}; make the dataset again"
    )


def check_side_by_side(shards: Sequence[Shard]) -> list[Shard]:
    """The shards, marked as checked in the version that they have now. ShardError names one of another md5.

    Remote shards, and those that no manifest lists, stay as they are.
    """
    versions = {
        shard.path: storage.version(shard.path)
        for shard in shards
        if shard.md5 is not None and not storage.is_remote(shard.path)
    }
    md5s = dict(zip(versions, file_md5s(list(versions)), strict=True))
    for shard in shards:
        if shard.path in md5s:
            refuse_changed(shard.path, md5s[shard.path], shard.md5)
    return [replace(shard, checked=versions.get(shard.path)) for shard in shards]
