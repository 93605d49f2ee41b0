"""Write a shard of packed rows from the scratch files with its sorted examples, and record it as finished."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bertdata.dataset.lengths import ShardLengths
from bertdata.dataset.manifest import ShardEntry
from bertdata.dataset.sorted_runs import read_group
from bertdata.examples.groups import count_masks
from bertdata.examples.objectives import find_objective
from bertdata.io.digests import make_md5_streams
from bertdata.io.file_check import HashingSink
from bertdata.packing.job import PackJob
from bertdata.packing.sort import PLACE_BITS
from bertdata.shards.packed.layouts import find_layout, make_pack_writer
from bertdata.shards.packed.packs import PackBatch, slice_packs, unpack_layout
from bertdata.shards.packed.record_index import RecordIndex
from bertdata.shards.tfrecord import encode_batch

_ROWS = 512
"""Number of rows that are encoded and written at a time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedShardTask:
    """Task for a worker: write one packed shard.

    number: index of the shard.
    files: the scratch files of all sort tasks, which hold the examples sorted by row.
    """

    job: PackJob
    number: int
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.job.names[self.number]


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedShard:
    """A packed shard that is finished.

    is_kept: True if an earlier run wrote it, False if this run did.
    """

    entry: ShardEntry
    is_kept: bool = False

    @property
    def line(self) -> str:
        """The line that reports this shard as progress."""
        made = "kept" if self.is_kept else "made"
        return f"{made} {self.entry.name} ({self.entry.rows} rows, {self.entry.examples} examples)"


def find_finished_shard(task: PackedShardTask) -> PackedShard | None:
    """Return the task's shard if an earlier run finished it from the same inputs, else None."""
    entries = task.job.dataset.find_finished_entry(task.name, task.job.corpus.md5)
    return None if entries is None else PackedShard(entry=entries[1], is_kept=True)


def write_or_keep_shard(task: PackedShardTask) -> PackedShard:
    """Write the task's shard. If an earlier run finished it, return that one."""
    [made] = write_or_keep_shards([task])
    return made


def write_or_keep_shards(tasks: Sequence[PackedShardTask]) -> list[PackedShard]:
    """Return the shards of several tasks, as ``write_or_keep_shard`` does for one.

    The md5s of the shards that are written are computed together, which is faster.
    """
    kept = [find_finished_shard(task) for task in tasks]
    left = [task for task, shard in zip(tasks, kept, strict=True) if shard is None]
    made = iter(_write_shards(left))
    return [shard or PackedShard(entry=next(made)) for shard in kept]


def _write_shards(tasks: Sequence[PackedShardTask]) -> list[ShardEntry]:
    """Write several shards at the same time and return their manifest entries.

    A few hundred rows of each shard are written in turn. Finished shards are recorded, so that a later run
    keeps them.
    """
    # For each shard there is a generator, which yields pieces of the shard's contents and finally its
    # manifest entry. In every round each unfinished shard writes a few hundred rows, and one call updates the
    # md5s of all shards. A shard that is already finished contributes b"" to this call.
    contents, entries = make_md5_streams(len(tasks)), dict[int, ShardEntry]()
    with ExitStack() as stack:
        growing = [stack.enter_context(closing(_write_shard(task))) for task in tasks]
        while len(entries) < len(tasks):
            pieces: list[bytes | memoryview] = []
            for number, shard in enumerate(growing):
                found = b"" if number in entries else next(shard)
                if isinstance(found, ShardEntry):
                    entries[number], found = found, b""
                pieces.append(found)
            contents.update(pieces)
    for number, (task, digest) in enumerate(zip(tasks, contents.digests(), strict=True)):
        entries[number] = replace(entries[number], content_md5=digest.hex())
        task.job.dataset.record(task.job.corpus, entries[number])
    return [entries[number] for number in range(len(tasks))]


def _write_shard(task: PackedShardTask) -> Generator[bytes | memoryview | ShardEntry, None, None]:
    """Write a shard. Yield its contents in pieces, and finally its manifest entry.

    The entry still lacks content_md5, which the caller computes from the pieces.
    """
    job, name = task.job, task.name
    has_index = find_layout(job.layout.packing).has_index and job.format == "tfrecord"
    lengths = ShardLengths()
    examples = tokens = masked = rows = 0
    with job.dataset.open_shard(name) as file:
        index = RecordIndex() if has_index else None
        sink = HashingSink(file.write if index is None else _TwoSinks(file.write, index.feed))
        writer = make_pack_writer(job.layout, job.format, sink)
        for packs in read_sorted_rows(task):
            writer.write(packs)
            batch = packs.examples
            lengths.add(batch)
            rows, examples, tokens = rows + len(packs), examples + len(batch), tokens + len(batch.ids)
            masked += count_masks(batch)
            yield encode_batch(batch, unpack_layout(job.layout))
        writer.close()
    yield ShardEntry(
        name=name,
        input="",
        bytes=sink.bytes,
        md5=sink.md5,
        content_md5="",
        examples=examples,
        tokens=tokens,
        masked_tokens=masked,
        lengths_md5=job.dataset.write_lengths(name, lengths),
        rows=rows,
        index_md5=None if index is None else job.dataset.write_index(name, index.dump()),
    )


class _TwoSinks:
    """Callable that passes the bytes it receives to two functions."""

    def __init__(self, first: Callable[[Any], object], second: Callable[[Any], object]) -> None:
        self._first, self._second = first, second

    def __call__(self, data: bytes | memoryview) -> None:
        self._first(data)
        self._second(data)


def read_sorted_rows(task: PackedShardTask) -> Iterator[PackBatch]:
    """Yield the shard's rows in order, a few hundred at a time.

    Only one bucket, which is a range of consecutive rows, is in memory at a time.
    """
    buckets = task.job.cuts.buckets
    for bucket in task.job.cuts.find_buckets(task.number):
        packs = _read_bucket(task, bucket, int(buckets[bucket + 1] - buckets[bucket]))
        for start in range(0, len(packs), _ROWS):
            yield _convert_ends(slice_packs(packs, start, min(start + _ROWS, len(packs))))


def _convert_ends(packs: PackBatch) -> PackBatch:
    """Return the packed rows with end offsets of 32 bits, because the C++ kernels accept no others."""
    examples = packs.examples
    ends = {name: getattr(examples, name).astype(np.uint32) for name in examples.ragged()}
    return PackBatch(examples=replace(examples, **ends), ends=packs.ends)


def _read_bucket(task: PackedShardTask, bucket: int, rows: int) -> PackBatch:
    kind, buckets = find_objective(task.job.layout.objective).batch_type, len(task.job.cuts.buckets) - 1
    piece = read_group(task.files, bucket, buckets, kind)
    # The examples are already sorted by row and by place in the row. Count the examples of each row.
    counts = np.bincount((piece.keys >> np.uint64(PLACE_BITS)).astype(np.int64), minlength=rows)
    assert len(counts) == rows, (len(counts), rows)
    assert counts.all(), "every row has an example"
    return PackBatch(examples=piece.examples, ends=np.cumsum(counts).astype(np.uint32))
