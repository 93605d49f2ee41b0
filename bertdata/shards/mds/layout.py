"""The layout of MDS shards, which their files do not say, from their manifest."""

from typing import Any

from bertdata.examples.objectives import objective_of_file
from bertdata.records import ShardLayout


def layout_in_manifest(manifest: dict[str, Any], name: str) -> ShardLayout:
    """The layout of the shards of a dataset's manifest. name: of the shard, in errors."""
    records = manifest["settings"]
    objective = objective_of_file(records["objective"]["name"], name)
    sizes = {size: records["objective"][size] for size in objective.batch_type.sizes()}
    padding_id = records["container"].get("padding_id", 0)
    return ShardLayout.of_sizes(sizes, objective=objective.name, padding_id=padding_id)
