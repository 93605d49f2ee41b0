"""Conversion to NVIDIA's permuted order, by an external sort of the examples.

Each task of the first stage reads some shards of the source and writes their examples to scratch files,
grouped by the new shard that they belong to. Each task of the second stage collects the examples of one new
shard from all scratch files and sorts them. A process holds one scratch file or one new shard in memory at a
time. Only the permutation itself takes memory in proportion to the whole dataset.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bertdata.build.conversion.example_cuts import find_destinations
from bertdata.build.conversion.job import ConversionJob, ConvertedShard
from bertdata.build.conversion.shard import write_shard
from bertdata.dataset.reader import OpenedDataset
from bertdata.dataset.sorted_runs import GroupedBatch, SortedExamples, read_group, write_runs
from bertdata.examples.columns import Array, slice_batch
from bertdata.examples.objectives import find_objective
from bertdata.io.scratch_files import ScratchFiles
from bertdata.records import ExampleBatch

MOST_TASKS = 512
BATCH = 4096


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ShardSortTask:
    """The task of sorting the examples of consecutive source shards by the new shard that they belong to.

    number: number of the task. It is also part of the names of the task's scratch files.
    places: the new position of each example of the whole dataset.
    folder: directory for the scratch files. None means the output dataset's ``unfinished/``.
    """

    job: ConversionJob
    number: int
    source: OpenedDataset
    places: Array
    folder: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PermutedShardTask:
    """The task of writing one new shard from the examples in the scratch files.

    number: index of the new shard, counted from 0.
    files: paths of the scratch files that all sort tasks wrote.
    """

    job: ConversionJob
    number: int
    files: tuple[str, ...]


def make_sort_tasks(job: ConversionJob, folder: str | None) -> Iterator[ShardSortTask]:
    """Yield the tasks that together sort all examples of the source dataset.

    folder: directory for the scratch files. None means the output dataset's ``unfinished/``.
    """
    shards, places = job.source.shards, find_destinations(job.source.examples)
    size, start = -(-len(shards) // MOST_TASKS), 0
    for number, first in enumerate(range(0, len(shards), size)):
        source = OpenedDataset(
            name=job.source.name,
            layout=job.source.layout,
            shards=shards[first : first + size],
            vocabulary_size=job.source.vocabulary_size,
        )
        stop = start + source.examples
        yield ShardSortTask(job=job, number=number, source=source, places=places[start:stop], folder=folder)
        start = stop


def sort_examples(task: ShardSortTask) -> SortedExamples:
    """Sort the examples of a task into scratch files.

    If an earlier run has already sorted the same source shards, its files are used again.
    """
    files = ScratchFiles(
        commit=task.job.dataset.commit,
        name=f"{task.number:05}",
        source=f"{task.source.digest} {task.job.corpus.md5}",
        folder=task.folder,
    )
    kept = files.kept()
    paths = write_runs(files, len(task.job.names), _place_examples(task)) if kept is None else kept.paths
    return SortedExamples.describe(task.source, paths, is_kept=kept is not None)


def _place_examples(task: ShardSortTask) -> Iterator[GroupedBatch]:
    """Yield the examples of a task in batches, with each example's new shard and position in that shard."""
    starts, first = np.array(task.job.starts, np.int64), 0
    for shard in task.source.shards:
        for batch in task.source.batches(shard):
            places = task.places[first : first + len(batch)]
            # For example, with starts [0, 100, 200] the place 130 is position 30 of shard 1.
            shards = np.searchsorted(starts, places, side="right") - 1
            yield batch, shards, (places - starts[shards]).astype(np.uint64)
            first += len(batch)


def write_permuted_shard(task: PermutedShardTask) -> list[ConvertedShard]:
    """Write one new shard in permuted order. Return a list that contains only this shard."""
    return [write_shard(task.job, task.number, _read_examples(task))]


def _read_examples(task: PermutedShardTask) -> Iterator[ExampleBatch]:
    """Yield the examples of the new shard in batches, in their new order."""
    kind = find_objective(task.job.layout.objective).batch_type
    examples = read_group(task.files, task.number, len(task.job.names), kind).examples
    for start in range(0, len(examples), BATCH):
        yield slice_batch(examples, start, min(start + BATCH, len(examples)))
