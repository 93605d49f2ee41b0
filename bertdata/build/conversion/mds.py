"""A dataset as one directory of MDS shards, cut where one MDSWriter would cut it.

The bytes of an example follow from its number of ids and its name, so the cut is planned before anything is
written, and workers make the shards in any order.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from bertdata.config.dataset_settings import DatasetSettings
from bertdata.dataset.companion_files import form_of
from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.examples.columns import Array, lengths
from bertdata.examples.objectives import find_objective, without_word_starts
from bertdata.io import storage
from bertdata.io.process_pool import ProcessPool
from bertdata.packing.source import PackSource
from bertdata.shards.mds.fit import check_kind, check_unmasked
from bertdata.shards.mds.ids import name_sizes, sample_sizes
from bertdata.shards.mds.names import MDS, without_ending
from bertdata.shards.mds.shard_file import cut_by_size

_ENDING = re.compile(r"\.(tfrecords?|hdf5|h5|parquet|pq)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasureTask:
    """Find the lengths of a shard's examples. source: that shard alone."""

    source: OpenedDataset


def measure_shard(task: MeasureTask) -> Array:
    """The number of ids of each example, 16 bits each: from the shard's lengths, else by reading it."""
    [shard] = task.source.shards
    if shard.lengths_md5 is not None:
        return np.array(task.source.lengths(shard), np.uint16)
    found = [lengths(batch.ends).astype(np.uint16) for batch in task.source.batches(shard)]
    return np.concatenate(found)


def refuse_source(source: PackSource, path: str) -> None:
    """SettingsError for examples with masks, or with more than ids and word starts, which are left out."""
    name = without_word_starts(source.opened.layout.objective)
    kind, where = find_objective(name).batch_type, f"{path}: {MDS}"
    if "unverified" in source.settings.objective:  # the writer looks at each example
        check_kind(kind, name, where)
    else:
        check_unmasked(kind, name, source.settings.objective, where)


def mds_starts(source: PackSource, settings: DatasetSettings, pool: ProcessPool) -> tuple[int, ...]:
    """The number of the first example of each shard, and of all. SettingsError for too low a limit."""
    form, shards = form_of(settings), source.opened.shards
    wide, with_len = "ndarray:uint32" in form.types, "len" in form.names
    tasks = [MeasureTask(source=source.of_shards(at, at + 1)) for at in range(len(shards))]
    sizes = []
    for shard, (_, counts) in zip(shards, pool.in_order(measure_shard, tasks), strict=True):
        names = name_sizes(stem_of(shard.name), 0, len(counts))
        sizes.append(sample_sizes(counts, names, wide=wide, with_len=with_len).astype(np.uint32))
    try:
        return tuple(cut_by_size(np.concatenate(sizes), form.dump(), form.size_limit))
    except ValueError as error:
        raise SettingsError(f"size_limit is {form.size_limit}, but {error}; give a larger one") from None


def stem_of(shard: str) -> str:
    """The name that an example's id has of its shard."""
    return _ENDING.sub("", without_ending(storage.base_name(shard)))


def example_names(source: OpenedDataset, first: int) -> Iterator[str]:
    """The names ``<shard>-<index>`` of the source's examples from that number on."""
    start, found = 0, []
    for shard in source.shards:
        begin = max(first - start, 0)
        if begin < shard.examples:
            stem = stem_of(shard.name)
            found.append((stem, begin, shard.examples))
        start += shard.examples
    return chain.from_iterable((f"{stem}-{index}" for index in range(a, b)) for stem, a, b in found)
