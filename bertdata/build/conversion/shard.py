"""Functions that write one converted shard, or all length bins of a shard, and record it as finished."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, cast

import numpy as np

from bertdata.build.conversion.job import ConversionJob, ConvertedShard
from bertdata.build.conversion.mds import make_example_names
from bertdata.dataset.shard_group import write_shard_group
from bertdata.examples.bins import divide_into_bins
from bertdata.examples.columns import convert_to_arrays, slice_batch
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.io.file_check import HashingSink
from bertdata.records import ExampleBatch
from bertdata.shards.containers import ARROW, FAIRSEQ, LDDL, make_writer
from bertdata.shards.protocol import ShardWriter
from bertdata.shards.write import CountingWriter
from bertdata.tokens.load import vocabulary_of


def find_kept_shard(job: ConversionJob, number: int) -> ConvertedShard | None:
    """Return the shard with this number if an earlier run finished it from the same inputs.

    Returns None if the shard must be written.
    """
    found = [job.dataset.find_finished_entry(name, job.corpus.md5) for name in job.names[number]]
    entries = tuple(one[1] for one in found if one is not None)
    if len(entries) < len(found):
        return None
    return ConvertedShard(number=number, entries=entries, is_kept=True)


def write_shard(job: ConversionJob, number: int, batches: Iterable[ExampleBatch]) -> ConvertedShard:
    """Write the shard with this number.

    batches: the examples of the shard, in order.
    """
    if job.format == FAIRSEQ:
        from bertdata.build.conversion.data_bin import write_data_bin

        return write_data_bin(job, number, map(_convert_offsets, batches))

    if job.layout.objective != job.source.layout.objective:
        batches = map(partial(_select_columns, find_objective(job.layout.objective).batch_type), batches)

    def write_all(writers: Sequence[CountingWriter]) -> None:
        for batch in batches:
            for which, examples in divide_into_bins(batch, job.bin_size) if job.bin_size else [(0, batch)]:
                writers[which].write(_convert_offsets(examples))

    open_writer = partial(_open_writer, job, number)
    entries = write_shard_group(job.dataset, job.names[number], job.layout, open_writer, write_all)
    for entry in entries:
        job.dataset.record(job.corpus, entry)
    return ConvertedShard(number=number, entries=entries)


def _open_writer(job: ConversionJob, number: int, which: int, sink: HashingSink) -> ShardWriter:
    """Return the object that writes examples to a shard's file.

    which: number of the length bin. It is 0 if there are no bins.
    sink: the open file.
    """
    if job.form is not None:
        from bertdata.shards.mds.container import MdsWriter

        path = storage.join(job.dataset.directory, job.names[number][which])
        names = make_example_names(job.source, job.starts[number])
        return MdsWriter(sink, job.layout, path, names=names, form=job.form)
    if job.format == ARROW:
        from bertdata.shards.arrow import ArrowWriter

        return ArrowWriter(sink, job.layout, has_masks=job.has_masks)
    if job.format != LDDL:
        return make_writer(job.format, sink, job.layout)
    from bertdata.shards.lddl import LddlWriter

    vocabulary = vocabulary_of(job.tokenizer)
    return LddlWriter(
        sink, job.layout, vocabulary, has_masks=job.has_masks, bin_id=which if job.bin_size else None
    )


def _select_columns(batch_type: type[ExampleBatch], batch: ExampleBatch) -> ExampleBatch:
    """Return the batch with only those columns that another batch type has.

    batch_type: the other batch type.
    """
    return batch_type(**{item.name: getattr(batch, item.name) for item in fields(cast(Any, batch_type))})


def _convert_offsets(batch: ExampleBatch) -> ExampleBatch:
    """Return the batch with its end offsets as uint32, because the C++ kernels accept no other type."""
    found = convert_to_arrays(batch)
    return replace(found, **{name: getattr(found, name).astype(np.uint32) for name in found.ragged()})


class ExampleStream:
    """A stream of examples that is read in portions of any size, independent of the size of its batches."""

    def __init__(self, batches: Iterable[ExampleBatch]) -> None:
        self._batches = iter(batches)
        self._rest: ExampleBatch | None = None

    def take(self, count: int) -> Iterator[ExampleBatch]:
        """Yield the next ``count`` examples of the stream, as one or more batches.

        The caller must read all these batches before it calls this method again.
        """
        while count:
            # If the batch has more examples than the caller wants, the rest is kept for the next call.
            batch = self._rest if self._rest is not None else next(self._batches)
            taken = min(count, len(batch))
            self._rest = slice_batch(batch, taken, len(batch)) if taken < len(batch) else None
            count -= taken
            yield slice_batch(batch, 0, taken)
