"""Small files that a program's layout has beside its shards: LDDL's counts, the JSON of ``datasets``."""

from collections.abc import Iterable

from bertdata.config.dataset_settings import DatasetSettings
from bertdata.dataset.manifest import ShardEntry
from bertdata.dataset.num_samples import NUM_SAMPLES, num_samples
from bertdata.examples.objectives import find_objective
from bertdata.shards.arrow_fields import ARROW_INFO, ARROW_STATE, arrow_fields, dataset_info, dataset_state
from bertdata.shards.containers import ARROW, LDDL


def layout_files(settings: DatasetSettings, shards: Iterable[ShardEntry]) -> dict[str, bytes]:
    """The files by name: a function of the dataset's settings and shards."""
    format = settings.container["format"]
    if format == LDDL:
        return {NUM_SAMPLES: num_samples(shards)}
    if format == ARROW:
        objective = find_objective(settings.objective["name"])
        fields = arrow_fields(objective, has_masks=settings.objective.get("masks", True))
        contents = {shard.name: shard.content_md5 for shard in sorted(shards, key=lambda shard: shard.name)}
        return {ARROW_STATE: dataset_state(contents), ARROW_INFO: dataset_info(fields)}
    return {}
