"""Conversion to a directory of MDS shards, divided exactly where a single MDSWriter would divide them.

MDSWriter begins a new shard when the next sample would exceed the size limit. A sample's size depends only on
its number of ids and its name. So all cuts are computed beforehand, and workers can write the shards in any
order.
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
    """The task of finding the lengths of a shard's examples.

    source: a dataset that contains only this shard.
    """

    source: OpenedDataset


def measure_shard(task: MeasureTask) -> Array:
    """Return the number of ids of each example (uint16), from the shard's lengths file if it has one."""
    [shard] = task.source.shards
    if shard.lengths_md5 is not None:
        return np.array(task.source.lengths(shard), np.uint16)
    found = [compute_lengths(batch.ends).astype(np.uint16) for batch in task.source.batches(shard)]
    return np.concatenate(found)


def refuse_source(source: InputDataset, path: str) -> None:
    """Raise SettingsError if the examples are masked, or have columns besides ids and word starts.

    (Word starts are dropped in the conversion.)
    """
    name = find_plain_objective_name(source.opened.layout.objective)
    kind, where = find_objective(name).batch_type, f"{path}: {MDS}"
    # Files without a manifest do not say whether they are masked. The writer then checks each example.
    if "unverified" in source.settings.objective:
        check_has_only_ids(kind, name, where)
    else:
        check_unmasked(kind, name, source.settings.objective, where)


def find_mds_starts(source: InputDataset, settings: DatasetSettings, pool: ProcessPool) -> tuple[int, ...]:
    """Return the index of each shard's first example, followed by the number of all examples.

    Raises SettingsError if the size limit is smaller than a sample.
    """
    form, shards = make_shard_form(settings), source.opened.shards
    wide, with_len = "ndarray:uint32" in form.types, "len" in form.names
    tasks = [MeasureTask(source=source.select_shards(at, at + 1)) for at in range(len(shards))]
    sizes = []
    for shard, (_, counts) in zip(shards, pool.in_order(measure_shard, tasks), strict=True):
        names = compute_name_sizes(find_stem(shard.name), 0, len(counts))
        sizes.append(compute_sample_sizes(counts, names, wide=wide, with_len=with_len).astype(np.uint32))
    try:
        return tuple(divide_by_size(np.concatenate(sizes), form.dump(), form.size_limit))
    except ValueError as error:
        raise SettingsError(f"size_limit is {form.size_limit}, but {error}; give a larger one") from None


def find_stem(shard: str) -> str:
    """Return the shard's name without endings, which the names of its examples begin with."""
    return _ENDING.sub("", strip_ending(storage.get_base_name(shard)))


def name_examples(source: OpenedDataset, first: int) -> Iterator[str]:
    """Yield the names ``<shard>-<index>`` of the source's examples from example number ``first`` on."""
    start, found = 0, []
    for shard in source.shards:
        begin = max(first - start, 0)
        if begin < shard.examples:
            stem = find_stem(shard.name)
            found.append((stem, begin, shard.examples))
        start += shard.examples
    return chain.from_iterable((f"{stem}-{index}" for index in range(a, b)) for stem, a, b in found)
