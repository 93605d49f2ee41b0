"""Conversion in NVIDIA's permuted order: an external sort of the examples by new position.

First each task reads some source shards and writes their examples to a scratch file, grouped by new shard.
Then another task per new shard gathers its examples from all scratch files and sorts them. Memory holds one
group or one shard at a time. Only the permutation itself grows with the corpus.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bertdata.build.conversion.example_cuts import find_destinations
from bertdata.build.conversion.job import ConvertedShard, Job
from bertdata.build.conversion.shard import write_shard
from bertdata.dataset.reader import OpenedDataset
from bertdata.dataset.sorted_runs import Placed, SortedExamples, read_group, write_runs
from bertdata.examples.columns import Array, slice_batch
from bertdata.examples.objectives import find_objective
from bertdata.io.scratch_files import ScratchFiles
from bertdata.records import ExampleBatch

MOST_TASKS = 512
BATCH = 4096


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ShardSortTask:
    """A task for a worker process: sort the examples of consecutive source shards by their new shard.

    number: number of the task, which also names its scratch files.
    places: the new position of each example among all examples of the dataset.
    folder: directory for the scratch files. None means the dataset's ``unfinished/``.
    """

    job: Job
    number: int
    source: OpenedDataset
    places: Array
    folder: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PermutedShardTask:
    """A task for a worker process: write one new shard from the examples in the scratch files.

    number: index of the new shard, from 0.
    files: the scratch files of all ShardSortTasks.
    """

    job: Job
    number: int
    files: tuple[str, ...]


def make_sort_tasks(job: Job, folder: str | None) -> Iterator[ShardSortTask]:
    """Yield the tasks that together sort all examples of the source.

    folder: directory for the scratch files. None means the dataset's ``unfinished/``.
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
    """Sort the task's examples into scratch files, or reuse an earlier run's files of the same shards."""
    files = ScratchFiles(
        commit=task.job.dataset.commit,
        name=f"{task.number:05}",
        source=f"{task.source.digest} {task.job.corpus.md5}",
        folder=task.folder,
    )
    kept = files.kept()
    paths = write_runs(files, len(task.job.names), _place_examples(task)) if kept is None else kept.paths
    return SortedExamples.of(task.source, paths, is_kept=kept is not None)


def _place_examples(task: ShardSortTask) -> Iterator[Placed]:
    """Yield the batches of the task with each example's new shard and position in that shard."""
    starts, first = np.array(task.job.starts, np.int64), 0
    for shard in task.source.shards:
        for batch in task.source.batches(shard):
            places = task.places[first : first + len(batch)]
            # starts [0, 100, 200], place 130 -> shard 1, position 30
            shards = np.searchsorted(starts, places, side="right") - 1
            yield batch, shards, (places - starts[shards]).astype(np.uint64)
            first += len(batch)


def write_permuted_shard(task: PermutedShardTask) -> list[ConvertedShard]:
    """Write one new shard of a permuted dataset. Returns a list with this shard as its only entry."""
    return [write_shard(task.job, task.number, _read_examples(task))]


def _read_examples(task: PermutedShardTask) -> Iterator[ExampleBatch]:
    """Yield the examples of the new shard in batches, in their new order."""
    kind = find_objective(task.job.layout.objective).batch_type
    examples = read_group(task.files, task.number, len(task.job.names), kind).examples
    for start in range(0, len(examples), BATCH):
        yield slice_batch(examples, start, min(start + BATCH, len(examples)))
