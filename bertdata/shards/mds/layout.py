"""The layout of MDS shards, which their files do not say: from the manifest, or of a directory's longest."""

from collections.abc import Iterable
from typing import Any

from bertdata.examples.objectives import objective_of_file
from bertdata.records import IDS, ShardLayout
from bertdata.shards.mds.names import is_mds_name


def layout_in_manifest(manifest: dict[str, Any], name: str) -> ShardLayout:
    """The layout of the shards of a dataset's manifest. name: of the shard, in errors."""
    records = manifest["settings"]
    objective = objective_of_file(records["objective"]["name"], name)
    sizes = {size: records["objective"][size] for size in objective.batch_type.sizes()}
    padding_id = records["container"].get("padding_id", 0)
    return ShardLayout.of_sizes(sizes, objective=objective.name, padding_id=padding_id)


def of_longest_shard(layouts: Iterable[tuple[str, ShardLayout]]) -> list[tuple[str, ShardLayout]]:
    """The layouts of files by path, those of MDS with the sizes of the one with the longest examples."""
    found = list(layouts)
    measured = [layout for path, layout in found if is_mds_name(path)]
    if not measured:
        return found
    longest = max(measured, key=lambda layout: layout.size(IDS.size))
    return [(path, longest if is_mds_name(path) else layout) for path, layout in found]
