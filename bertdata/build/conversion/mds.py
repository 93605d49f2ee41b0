"""Conversion to a directory of MDS shards, with the same division into shards that MosaicML's MDSWriter
makes.

MDSWriter begins a new shard when the next sample would exceed the size limit. The size of a sample depends
only on its number of ids and on its name. The first example of each shard is therefore computed beforehand,
so that workers can write the shards in any order.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from bertdata.config.dataset_settings import DatasetSettings
from bertdata.dataset.companion_files import make_shard_form
from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.examples.columns import Array, compute_lengths
from bertdata.examples.objectives import find_objective, find_plain_objective_name
from bertdata.io import storage
from bertdata.io.process_pool import ProcessPool
from bertdata.packing.input_dataset import InputDataset
from bertdata.shards.mds.fit import check_has_only_ids, check_unmasked
from bertdata.shards.mds.ids import compute_name_sizes, compute_sample_sizes
from bertdata.shards.mds.names import MDS, strip_ending
from bertdata.shards.mds.shard_file import divide_by_size

_ENDING = re.compile(r"\.(tfrecords?|hdf5|h5|parquet|pq)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasureTask:
    """The task of finding the number of ids of each example in one shard.

    source: a dataset that contains only this shard.
    """

    source: OpenedDataset


def measure_shard(task: MeasureTask) -> Array:
    """Return the number of ids of each example in a shard as a uint16 array.

    The numbers are read from the shard's lengths file if it has one, otherwise from the examples.
    """
    [shard] = task.source.shards
    if shard.lengths_md5 is not None:
        return np.array(task.source.lengths(shard), np.uint16)
    found = [compute_lengths(batch.ends).astype(np.uint16) for batch in task.source.batches(shard)]
    return np.concatenate(found)


def check_mds_source(source: InputDataset, path: str) -> None:
    """Raise SettingsError if an MDS dataset cannot hold the source's examples.

    It can hold unmasked examples that consist of ids and word starts. The conversion drops the word starts.
    """
    name = find_plain_objective_name(source.opened.layout.objective)
    kind, where = find_objective(name).batch_type, f"{path}: {MDS}"
    # Without a manifest, it is not known whether the examples are masked. Each example is then checked when
    # it is written.
    if "unverified" in source.settings.objective:
        check_has_only_ids(kind, name, where)
    else:
        check_unmasked(kind, name, source.settings.objective, where)


def find_mds_starts(source: InputDataset, settings: DatasetSettings, pool: ProcessPool) -> tuple[int, ...]:
    """Return the index of the first example of each shard, followed by the total number of examples.

    Raises SettingsError if a single sample is larger than the size limit of a shard.
    """
    form, shards = make_shard_form(settings), source.opened.shards
    wide, with_len = "ndarray:uint32" in form.types, "len" in form.names
    tasks = [MeasureTask(source=source.select_shards(at, at + 1)) for at in range(len(shards))]
    sizes = []
    for shard, (_, counts) in zip(shards, pool.in_order(measure_shard, tasks), strict=True):
        names = compute_name_sizes(make_example_prefix(shard.name), 0, len(counts))
        sizes.append(compute_sample_sizes(counts, names, wide=wide, with_len=with_len).astype(np.uint32))
    try:
        return tuple(divide_by_size(np.concatenate(sizes), form.dump(), form.size_limit))
    except ValueError as error:
        raise SettingsError(f"size_limit is {form.size_limit}, but {error}; give a larger one") from None


def make_example_prefix(shard: str) -> str:
    """Return the shard's file name without its endings. The names of the shard's examples begin with it."""
    return _ENDING.sub("", strip_ending(storage.get_base_name(shard)))


def make_example_names(source: OpenedDataset, first: int) -> Iterator[str]:
    """Yield the names ``<shard>-<index>`` of the source's examples.

    first: number of the example to start from.
    """
    start, found = 0, []
    for shard in source.shards:
        begin = max(first - start, 0)
        if begin < shard.examples:
            stem = make_example_prefix(shard.name)
            found.append((stem, begin, shard.examples))
        start += shard.examples
    return chain.from_iterable((f"{stem}-{index}" for index in range(a, b)) for stem, a, b in found)
