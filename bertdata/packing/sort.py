"""Sort the examples of a few shards by their packed row, into scratch files that are divided into buckets."""

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
"""Number of low bits of a sort key, which hold the example's place in its row. The high bits hold the row's
number within the bucket.
"""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RowSortTask:
    """Task for a worker: sort the examples of consecutive shards by their packed row.

    source: only the shards to sort.
    before: number of examples by length in all shards before them.
    counts: number of examples by length in each of the shards. What is read is compared with these numbers.
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
    """Sort the task's examples, or keep the scratch files that an earlier run made from the same shards.

    ShardError if a shard's examples do not have the lengths in its lengths file.
    """
    [found] = sort_shards_together([task])
    return found


def sort_shards_together(tasks: Sequence[RowSortTask]) -> list[SortedExamples]:
    """Run ``sort_by_row`` for each task, with the md5s of all their shards computed in parallel."""
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
    """Yield the task's examples as batches, with the bucket and the key of each example.

    ShardError if the examples do not have the expected lengths.
    """
    placement, numbering = task.job.placement(), Numbering(task.before)
    for shard, expected in zip(task.source.shards, task.counts, strict=True):
        found = np.zeros_like(expected)
        for batch in task.source.batches(shard):
            tokens = compute_lengths(batch.ends)
            found += np.bincount(tokens, minlength=len(found))
            # Compare before the examples are placed: more examples of a length than planned have no place in
            # a row, and Placement would give them a wrong one.
            if (found > expected).any():
                raise _make_wrong_lengths_error(shard, found, expected)
            which, keys = _find_bucket_keys(task, placement.find(tokens, numbering.add(tokens)))
            yield batch, which, keys
        if (found != expected).any():
            raise _make_wrong_lengths_error(shard, found, expected)


def _find_bucket_keys(task: RowSortTask, places: RowPlaces) -> tuple[Array, Array]:
    """Return, for each example, the number of its bucket of rows and its sort key within the bucket."""
    buckets, rows = task.job.cuts.buckets, places.rows
    # Buckets start at rows [0, 100, 200]: row 130, place 2 -> bucket 1, key (30 << PLACE_BITS) | 2
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
    """Check the md5s of the shards in parallel. Return the shards with the file version that was checked.

    ShardError names a shard with a wrong md5. Remote shards and shards without a manifest are not checked
    here.
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
