"""Examples of a few shards sorted into files by the bucket of their packed row.

So a process holds a run of examples or a bucket of rows at a time, however many there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from bertdata.build.packs.job import PackJob
from bertdata.build.packs.spilled import PLACE_BITS, SpillEntry, SpillSink, write_run
from bertdata.dataset.checked import check_side_by_side
from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.errors import ManifestError, ShardError
from bertdata.examples.columns import join, lengths, take
from bertdata.io import storage
from bertdata.io.commit import Commit
from bertdata.io.entry_json import parse_entry_list
from bertdata.packing.placement import Numbering, RowPlaces
from bertdata.packing.plan import Histogram
from bertdata.records import ExampleBatch

NOTES = "sorted/"
"""Beginning of the names by which the commit protocol knows these files; no shard's name has a slash."""

RUN_TOKENS = 1 << 23
"""Tokens of a run that is held and sorted at a time; they need about three bytes each, a few times over."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SortTask:
    """Sort the examples of consecutive shards.

    source: these shards alone; before: examples by length in all shards before them; counts: in each of them.
    """

    job: PackJob
    number: int
    source: OpenedDataset
    before: Histogram
    counts: tuple[Histogram, ...]

    @property
    def name(self) -> str:
        return f"{NOTES}{self.number:05}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SortedExamples:
    """The sorted files of a task, and how many examples they hold."""

    files: tuple[str, ...]
    examples: int
    name: str
    is_kept: bool = False

    @property
    def line(self) -> str:
        """The task's outcome, for a person."""
        return f"kept {self.name}, sorted before" if self.is_kept else f"sorted {self.name}"


def sort_examples(task: SortTask) -> SortedExamples:
    """Sort the task's examples, or keep the files that an earlier run made of the same shards.

    ShardError where a shard's examples are not those that its lengths say.
    """
    [found] = sort_together([task])
    return found


def sort_together(tasks: Sequence[SortTask]) -> list[SortedExamples]:
    """``sort_examples`` of each task; the md5s of their shards are checked side by side."""
    kept = [_kept(task) for task in tasks]
    left = [task for task, files in zip(tasks, kept, strict=True) if files is None]
    checked = iter(check_side_by_side([shard for task in left for shard in task.source.shards]))
    found = []
    for task, files in zip(tasks, kept, strict=True):
        is_kept = files is not None
        if files is None:
            shards = tuple(islice(checked, len(task.source.shards)))
            files = _sort(replace(task, source=replace(task.source, shards=shards)))
        found.append(
            SortedExamples(
                files=tuple(files),
                examples=task.source.examples,
                name=_shards_name(task.source),
                is_kept=is_kept,
            )
        )
    return found


def _shards_name(source: OpenedDataset) -> str:
    first, last = source.shards[0].name, source.shards[-1].name
    return first if first == last else f"{first} to {last}"


def _sort(task: SortTask) -> list[str]:
    placement, numbering = task.job.placement(), Numbering(task.before)
    runs = _Runs(task)
    for shard, expected in zip(task.source.shards, task.counts, strict=True):
        found = np.zeros_like(expected)
        for batch in task.source.batches(shard):
            tokens = lengths(batch.ends)
            found += np.bincount(tokens, minlength=len(found))
            if (found > expected).any():
                raise _other_lengths(shard, found, expected)
            runs.add(batch, placement.find(tokens, numbering.add(tokens)))
        if (found != expected).any():
            raise _other_lengths(shard, found, expected)
    return runs.finish()


def _other_lengths(shard: Shard, found: Histogram, expected: Histogram) -> ShardError:
    length = int(np.argmax(found != expected))
    return ShardError(
        f"{shard.path}: holds {found[length]} examples of {length} tokens or more, but its lengths in "
        f"{shard.lengths_path} say {expected[length]}; make the dataset again"
    )


class _Runs:
    """Collects examples with their places; writes a sorted file of them now and then."""

    def __init__(self, task: SortTask) -> None:
        self._task = task
        self._held: list[tuple[ExampleBatch, RowPlaces]] = []
        self._tokens = 0
        self._entries: list[SpillEntry] = []
        self._files: list[str] = []

    def add(self, batch: ExampleBatch, places: RowPlaces) -> None:
        self._held.append((batch, places))
        self._tokens += len(batch.ids)
        if self._tokens >= RUN_TOKENS:
            self._write()

    def finish(self) -> list[str]:
        """The paths of all files; they are noted, where a later run can find them."""
        if self._held:
            self._write()
        if self._task.job.folder is None:
            note = {
                "source": self._task.source.digest,
                "files": [entry._asdict() for entry in self._entries],
            }
            self._task.job.dataset.commit.note(self._task.name, note)
        return self._files

    def _write(self) -> None:
        held, self._held, self._tokens = self._held, [], 0
        batch = join([batch for batch, _ in held])
        rows = np.concatenate([places.rows for _, places in held])
        places = np.concatenate([places.places for _, places in held])
        del held
        buckets = self._task.job.cuts.buckets
        which = np.searchsorted(buckets, rows, side="right") - 1
        order = np.argsort(which, kind="stable")
        keys = (((rows - buckets[which]) << PLACE_BITS) | places).astype(np.uint64)
        counts = np.bincount(which, minlength=len(buckets) - 1)
        job, name = self._task.job, f"{self._task.name}-{len(self._files):05}"
        scratch = job.dataset.commit.scratch_name(name)
        opened: Any
        if job.folder is None:
            path, opened = job.dataset.commit.path(scratch), job.dataset.commit.open(scratch)
        else:
            path = storage.join(job.folder, storage.base_name(scratch))
            opened = storage.open_output(path)
        with opened as file:
            sink = SpillSink(file)
            write_run(keys[order], take(batch, order), counts, sink)
        self._files.append(path)
        self._entries.append(sink.entry(scratch))


def _kept(task: SortTask) -> list[str] | None:
    """The files of an earlier run, if they were made of the same shards and are still whole."""
    job = task.job
    note = job.dataset.commit.read_note(task.name) if job.folder is None else None
    if note is None or note.get("source") != task.source.digest:
        return None
    try:
        entries = parse_entry_list(SpillEntry, note.get("files"))
    except ManifestError:
        return None  # a note of another version
    if not all(entry.fits(job.dataset.directory) for entry in entries):
        return None
    return [job.dataset.commit.path(entry.name) for entry in entries]


def forget_sorted(commit: Commit) -> None:
    """Remove all sorted files and their notes, so that the directory may be made with other settings."""
    for name in commit.noted():
        if name.startswith(NOTES):
            commit.forget(name)
    for name in storage.list_files(commit.unfinished):
        if name.endswith(".scratch"):
            storage.remove(storage.join(commit.unfinished, name), missing_ok=True)
