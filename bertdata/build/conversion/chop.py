"""Conversion that keeps the order of the examples.

Each worker reads a range of consecutive examples once and writes them to consecutive new shards.
"""

from dataclasses import dataclass

from bertdata.build.conversion.job import ConversionJob, ConvertedShard
from bertdata.build.conversion.shard import ExampleStream, write_shard

TASKS_PER_WORKER = 4
"""Number of tasks per worker. It is more than one so that workers that finish early can take over another
task.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChopTask:
    """The task of writing consecutive new shards.

    first: number of the first shard to write.
    stop: number after the last shard to write.
    """

    job: ConversionJob
    first: int
    stop: int


def make_chop_tasks(job: ConversionJob, missing: list[int], workers: int) -> list[ChopTask]:
    """Divide the missing shards among tasks that each write consecutive shards."""
    # For example, the missing shards [0, 1, 2, 5, 6] with at most 2 shards per task become the tasks [0, 1],
    # [2] and [5, 6].
    most = max(1, len(missing) // (TASKS_PER_WORKER * workers))
    tasks: list[ChopTask] = []
    for number in missing:
        last = tasks[-1] if tasks else None
        if last is not None and last.stop == number and number - last.first < most:
            tasks[-1] = ChopTask(job=job, first=last.first, stop=number + 1)
        else:
            tasks.append(ChopTask(job=job, first=number, stop=number + 1))
    return tasks


def write_consecutive_shards(task: ChopTask) -> list[ConvertedShard]:
    """Write the new shards of a task, reading the source dataset's examples in order."""
    job = task.job
    examples = ExampleStream(job.source.read_range(range(job.starts[task.first], job.starts[task.stop])))
    return [
        write_shard(job, number, examples.take(job.starts[number + 1] - job.starts[number]))
        for number in range(task.first, task.stop)
    ]
