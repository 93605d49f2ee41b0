"""Sort the examples of a few shards by their packed row, into scratch files.

The scratch files are divided into buckets, which are ranges of consecutive rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from bertdata.dataset.check import refuse_changed
from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.dataset.sorted_runs import GroupedBatch, SortedExamples, write_runs
from bertdata.errors import ShardError
from bertdata.examples.columns import Array, compute_lengths
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5s
from bertdata.io.scratch_files import ScratchFiles
from bertdata.packing.job import PackJob
from bertdata.packing.pack_plan import Histogram
from bertdata.packing.placement import Numbering, RowPlaces

PLACE_BITS = 16
"""An example's sort key has this many low bits for its place in the row.

The high bits are the number of the row within its bucket, which is a range of consecutive rows.
"""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RowSortTask:
    """Task for a worker: sort the examples of consecutive shards by their packed row.

    number: number of the task.
    source: the source dataset with only the shards to sort.
    before: number of examples by length in all shards before the shards to sort.
    counts: number of examples by length in each shard to sort. The examples that are read must agree with it.
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
    """Sort the examples of a task's shards by their packed row into scratch files.

    If an earlier run made the scratch files from the same shards, these are returned. Raises ShardError if a
    shard's examples do not have the lengths that its lengths file states.
    """
    [found] = sort_shards_together([task])
    return found


def sort_shards_together(tasks: Sequence[RowSortTask]) -> list[SortedExamples]:
    """Do the work of ``sort_by_row`` for several tasks.

    The md5s of all their shards are computed together, in parallel.
    """
    kept = [task.scratch.kept() for task in tasks]
    left = [task for task, files in zip(tasks, kept, strict=True) if files is None]
    checked = iter(check_consecutive_shards([shard for task in left for shard in task.source.shards]))
    found = []
    for task, files in zip(tasks, kept, strict=True):
        if files is None:
            shards = tuple(islice(checked, len(task.source.shards)))
            task = replace(task, source=replace(task.source, shards=shards))
            paths = write_runs(task.scratch, len(task.job.cuts.buckets) - 1, _place_examples(task))
        else:
            paths = files.paths
        found.append(SortedExamples.describe(task.source, paths, is_kept=files is not None))
    return found


def _place_examples(task: RowSortTask) -> Iterator[GroupedBatch]:
    """Yield the task's examples in batches. With each batch come the bucket and the sort key of each example.

    Raises ShardError if the examples do not have the expected lengths.
    """
    placement, numbering = task.job.placement(), Numbering(task.before)
    for shard, expected in zip(task.source.shards, task.counts, strict=True):
        found = np.zeros_like(expected)
        for batch in task.source.batches(shard):
            tokens = compute_lengths(batch.ends)
            found += np.bincount(tokens, minlength=len(found))
            # Compare the counts before examples are placed. The plan has no place for surplus examples of a
            # length, and Placement would give them a wrong place.
            if (found > expected).any():
                raise _make_wrong_lengths_error(shard, found, expected)
            which, keys = _find_bucket_keys(task, placement.find(tokens, numbering.add(tokens)))
            yield batch, which, keys
        if (found != expected).any():
            raise _make_wrong_lengths_error(shard, found, expected)


def _find_bucket_keys(task: RowSortTask, places: RowPlaces) -> tuple[Array, Array]:
    """Return for each example the number of its bucket, and its sort key within the bucket.

    A bucket is a range of consecutive rows.
    """
    buckets, rows = task.job.cuts.buckets, places.rows
    # For example, if buckets start at the rows [0, 100, 200], row 130 is in bucket 1. An example at its place
    # 2 has the key (30 << PLACE_BITS) | 2.
    which = np.searchsorted(buckets, rows, side="right") - 1
    keys = ((rows - buckets[which]) << PLACE_BITS) | places.places
    return which, keys.astype(np.uint64)


def _make_wrong_lengths_error(shard: Shard, found: Histogram, expected: Histogram) -> ShardError:
    length = int(np.argmax(found != expected))
    return ShardError(
        f"{shard.path}: holds {found[length]} examples of {length} tokens or more, but its lengths in "
        f"{shard.lengths_path} say {expected[length]}; make the dataset again"
    )


def check_consecutive_shards(shards: Sequence[Shard]) -> list[Shard]:
    """Check the md5s of shards in parallel.

    Return the shards, which now record the version of the file that was checked.

    Raises ShardError, which names a shard with a wrong md5. Remote shards and shards without a manifest are
    not checked here.
    """
    versions = {
        shard.path: storage.read_version(shard.path)
        for shard in shards
        if shard.md5 is not None and not storage.is_remote(shard.path)
    }
    md5s = dict(zip(versions, compute_file_md5s(list(versions)), strict=True))
    for shard in shards:
        if shard.path in md5s:
            refuse_changed(shard.path, md5s[shard.path], shard.md5)
    return [replace(shard, checked=versions.get(shard.path)) for shard in shards]
