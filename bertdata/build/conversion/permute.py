"""Shards of permuted examples: sorted by shard into files first, then gathered.

So a process holds a run of examples or one shard at a time; the permutation alone grows with the corpus.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bertdata.build.conversion.shard import ConvertedShard, Job, write_shard
from bertdata.build.conversion.shares import destinations
from bertdata.build.packs.spilled import join_pieces, read_piece, write_run
from bertdata.dataset.reader import OpenedDataset
from bertdata.examples.columns import Array, cut, join, take
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.records import ExampleBatch

RUN_TOKENS = 1 << 23
"""Tokens of a run that is held and sorted at a time; they need about three bytes each, a few times over."""
MOST_TASKS = 512
BATCH = 4096


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SortTask:
    """Sort the examples of consecutive source shards; places: of each in the permutation."""

    job: Job
    number: int
    source: OpenedDataset
    places: Array
    folder: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class GatherTask:
    """Make shard ``number`` from the sorted files."""

    job: Job
    number: int
    files: tuple[str, ...]


def sort_tasks(job: Job, folder: str | None) -> Iterator[SortTask]:
    """The tasks that sort all examples; folder: of the files, None: the dataset's ``unfinished/``."""
    shards, places = job.source.shards, destinations(job.source.examples)
    size, start = -(-len(shards) // MOST_TASKS), 0
    for number, first in enumerate(range(0, len(shards), size)):
        source = OpenedDataset(
            name=job.source.name,
            layout=job.source.layout,
            shards=shards[first : first + size],
            vocabulary_size=job.source.vocabulary_size,
        )
        stop = start + source.examples
        yield SortTask(job=job, number=number, source=source, places=places[start:stop], folder=folder)
        start = stop


@dataclass(frozen=True, kw_only=True, slots=True)
class SortedExamples:
    """The files of a task's examples, each sorted by shard; name: of the source's shards."""

    name: str
    files: tuple[str, ...]


def sort_examples(task: SortTask) -> SortedExamples:
    """The task's examples, sorted."""
    files: list[str] = []
    held: list[ExampleBatch] = []
    first = count = tokens = 0
    for shard in task.source.shards:
        for batch in task.source.batches(shard):
            held.append(batch)
            count, tokens = count + len(batch), tokens + len(batch.ids)
            if tokens >= RUN_TOKENS:
                files.append(_write(task, len(files), join(held), task.places[first : first + count]))
                held, first, count, tokens = [], first + count, 0, 0
    if held:
        files.append(_write(task, len(files), join(held), task.places[first:]))
    shards = task.source.shards
    name = shards[0].name if len(shards) == 1 else f"{shards[0].name} to {shards[-1].name}"
    return SortedExamples(name=name, files=tuple(files))


def _write(task: SortTask, run: int, examples: ExampleBatch, places: Array) -> str:
    starts = np.array(task.job.starts, np.int64)
    shards = np.searchsorted(starts, places, side="right") - 1
    order = np.argsort(shards, kind="stable")
    keys = (places - starts[shards]).astype(np.uint64)
    counts = np.bincount(shards, minlength=len(starts) - 1)
    commit = task.job.dataset.commit
    scratch = commit.scratch_name(f"sorted/{task.number:05}-{run:05}")
    folder = task.folder
    path = commit.path(scratch) if folder is None else storage.join(folder, storage.base_name(scratch))
    with commit.open(scratch) if folder is None else storage.open_output(path) as file:
        write_run(keys[order], take(examples, order), counts, file)
    return path


def gather(task: GatherTask) -> list[ConvertedShard]:
    """The task's shard, made."""
    return [write_shard(task.job, task.number, _examples(task))]


def _examples(task: GatherTask) -> Iterator[ExampleBatch]:
    kind = find_objective(task.job.layout.objective).batch_type
    found = (read_piece(path, task.number, len(task.job.names), kind) for path in task.files)
    piece = join_pieces([one for one in found if one is not None])
    examples = take(piece.examples, np.argsort(piece.keys))
    for start in range(0, len(examples), BATCH):
        yield cut(examples, start, min(start + BATCH, len(examples)))


def forget_sorted(job: Job) -> None:
    """Remove all sorted files, so that the directory may be made with other settings."""
    unfinished = job.dataset.commit.unfinished
    for name in storage.list_files(unfinished):
        if name.endswith(".scratch"):
            storage.remove(storage.join(unfinished, name), missing_ok=True)
