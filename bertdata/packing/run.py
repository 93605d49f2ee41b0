"""Write a packed dataset: sort all examples by row into scratch files, then merge these files into shards."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeVar

from bertdata.dataset.lost_text import add_lost_tokens
from bertdata.dataset.manifest import Manifest, ShardEntry
from bertdata.dataset.sorted_runs import SortedExamples
from bertdata.errors import DataError, UsageError
from bertdata.io import storage
from bertdata.io.digests import STREAMS_AT_ONCE
from bertdata.io.process_pool import ProcessPool
from bertdata.io.scratch_files import choose_scratch_folder, delete_scratch_files
from bertdata.packing.gather import PackedShard, find_finished_shard, write_or_keep_shards
from bertdata.packing.habana_metadata import dump_metadata, make_metadata_path
from bertdata.packing.input_dataset import CountTask, InputDataset, LengthCounts, count_shard_lengths
from bertdata.packing.job import PackJob
from bertdata.packing.planned_pack import PlannedPack
from bertdata.packing.sort import sort_shards_together

Task = TypeVar("Task")
Result = TypeVar("Result", SortedExamples, PackedShard)

SHARDS_AT_A_TIME = 4
"""The number of shards that a process writes at the same time.

Computing the md5s of these shards together is faster. Each shard needs memory for one bucket, that is, a
range of consecutive rows.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class FinishedPack:
    """A packed dataset that is finished.

    kept: number of shards that an earlier run wrote.
    """

    manifest: Manifest
    kept: int


OnShard = Callable[[SortedExamples | PackedShard], None]
"""Function that is called with the result of each sort task, and with each shard that is written or kept."""


def count_all_lengths(
    source: InputDataset, workers: int, on_counted: Callable[[], None]
) -> list[LengthCounts]:
    """Count how many examples of each length the source's shards have.

    The result has the order of the shards.

    workers: number of processes.
    on_counted: called after each shard.
    """
    shards = len(source.opened.shards)
    tasks = [CountTask(source=source.select_shards(number, number + 1)) for number in range(shards)]
    # Local lengths files are read in one process, because reading them is faster than starting others.
    processes = (
        1 if source.opened.has_lengths and not storage.is_remote(source.opened.shards[0].path) else workers
    )
    found = []
    with ProcessPool(min(processes, shards)) as pool:
        for _, counts in pool.in_order(count_shard_lengths, tasks):
            found.append(counts)
            on_counted()
    return found


def make_pack(planned: PlannedPack, output: str, workers: int, on_shard: OnShard) -> FinishedPack:
    """Write a planned packed dataset to the directory ``output``. If an earlier run began it, finish it.

    workers: number of processes.
    on_shard: called with the result of each sort task, and with each shard.
    """
    vocabulary = planned.source.vocabulary_path()
    with ExitStack() as stack:
        job = planned.job(output, stack.enter_context(choose_scratch_folder(output)))
        stack.enter_context(job.dataset.run())
        pool = stack.enter_context(ProcessPool(min(workers, max(len(planned.counts), len(job.names)))))
        try:
            shards = _make_shards(planned, job, pool, max(1, workers), on_shard)
        except (DataError, UsageError):  # Other settings or another source can then use the directory.
            delete_scratch_files(job.dataset.commit)
            raise
        manifest = finish_pack(planned, job, [shard.entry for shard in shards], vocabulary)
    return FinishedPack(manifest=manifest, kept=sum(shard.is_kept for shard in shards))


def finish_pack(planned: PlannedPack, job: PackJob, shards: list[ShardEntry], vocabulary: str) -> Manifest:
    """Write the manifest of a packed dataset.

    For Habana's layout also write its metadata file next to the directory.

    shards: the manifest entries of the shards.
    vocabulary: path of the vocabulary file.
    """
    manifest = job.dataset.finish(
        planned.inputs,
        add_lost_tokens(sorted(shards, key=attrgetter("name")), planned.source.lost_tokens),
        planned.source.skipped,
        vocabulary=vocabulary,
        provenance=planned.source.provenance,
    )
    if planned.settings.layout == "habana":
        with storage.open_output(make_metadata_path(job.dataset.directory)) as file:
            file.write(dump_metadata(planned.plan))
    return manifest


def _make_shards(
    planned: PlannedPack, job: PackJob, pool: ProcessPool, workers: int, on_shard: OnShard
) -> list[PackedShard]:
    """Write the packed shards that no earlier run has finished. Return all shards.

    If all shards are finished already, the examples are not sorted.
    """
    kept = [
        shard
        for _, shard in pool.in_order(find_finished_shard, planned.gather_tasks(job))
        if shard is not None
    ]
    for shard in kept:
        on_shard(shard)
    if len(kept) == len(job.names):
        return kept
    groups = group_small_tasks(planned.sort_tasks(job), STREAMS_AT_ONCE, workers)
    found = list(_report_each_shard(pool.as_done(sort_shards_together, groups), on_shard))
    files = tuple(sorted(file for one in found for file in one.files))
    names = {shard.entry.name for shard in kept}
    tasks = [task for task in planned.gather_tasks(job, files) if task.name not in names]
    made = pool.as_done(write_or_keep_shards, group_small_tasks(tasks, SHARDS_AT_A_TIME, workers))
    return [*kept, *_report_each_shard(made, on_shard)]


def group_small_tasks(tasks: Sequence[Task], most: int, workers: int) -> list[Sequence[Task]]:
    """Divide tasks into groups of at most ``most``, with two groups or more for each worker if there are
    enough tasks.

    The groups do not change the result of the run.
    """
    size = min(most, max(1, len(tasks) // (2 * workers)))
    return [tasks[start : start + size] for start in range(0, len(tasks), size)]


def _report_each_shard(results: Iterable[Iterable[Result]], on_shard: OnShard) -> Iterator[Result]:
    for group in results:
        for result in group:
            on_shard(result)
            yield result
