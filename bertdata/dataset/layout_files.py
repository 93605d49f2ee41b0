"""Small files of a program's layout beside its shards: LDDL's counts, JSON of ``datasets``, MDS's index."""

from collections.abc import Iterable

from bertdata.config.dataset_settings import DatasetSettings
from bertdata.dataset.manifest import ShardEntry
from bertdata.dataset.mds_index import mds_index
from bertdata.dataset.num_samples import NUM_SAMPLES, num_samples
from bertdata.examples.objectives import find_objective
from bertdata.shards.arrow_fields import arrow_fields, dataset_info, dataset_state
from bertdata.shards.containers import ARROW, LDDL, MDS
from bertdata.shards.mds.names import INDEX_NAME
from bertdata.sources.saved_datasets import INFO, STATE


def layout_files(directory: str, settings: DatasetSettings, shards: Iterable[ShardEntry]) -> dict[str, bytes]:
    """The files by name: a function of the dataset's settings and shards. See mds_index."""
    make = _FILES.get(settings.container["format"])
    return {} if make is None else make(directory, settings, shards)


def _lddl_files(directory: str, settings: DatasetSettings, shards: Iterable[ShardEntry]) -> dict[str, bytes]:
    return {NUM_SAMPLES: num_samples(shards)}


def _arrow_files(directory: str, settings: DatasetSettings, shards: Iterable[ShardEntry]) -> dict[str, bytes]:
    objective = find_objective(settings.objective["name"])
    fields = arrow_fields(objective, has_masks=settings.objective.get("masks", True))
    contents = {shard.name: shard.content_md5 for shard in sorted(shards, key=lambda shard: shard.name)}
    return {STATE: dataset_state(contents), INFO: dataset_info(fields)}


def _mds_files(directory: str, settings: DatasetSettings, shards: Iterable[ShardEntry]) -> dict[str, bytes]:
    return {INDEX_NAME: mds_index(directory, settings, shards)}


_FILES = {LDDL: _lddl_files, ARROW: _arrow_files, MDS: _mds_files}
"""By container. One that is not named has no further files."""
