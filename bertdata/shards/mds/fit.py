"""Check that examples can be stored in MDS, which holds only unmasked ids, before anything is written."""

from collections.abc import Mapping
from typing import Any

from bertdata.errors import SettingsError
from bertdata.examples.groups import MASKS, WORD_STARTS, has_group
from bertdata.examples.objectives import find_objective_of_file
from bertdata.records import IDS, ExampleBatch, ShardLayout
from bertdata.shards.mds.names import MDS

UNMASKED = "make the dataset with bertdata create --objective mlm --no-masks"


def check_has_only_ids(batch_type: type[ExampleBatch], objective: str, where: str = MDS) -> None:
    """Raise SettingsError if the objective's examples have anything besides ids and masks.

    where: what the message calls the place where the examples are to be stored.
    """
    if has_group(batch_type, WORD_STARTS):
        raise SettingsError(
            f"{where} holds ids alone; objective {objective} has word starts too; create --format mds and "
            "convert --to mds leave them out"
        )
    others = [group.name for group in batch_type.groups() if group not in (IDS, MASKS)]
    if others:
        raise SettingsError(
            f"{where} holds ids alone; objective {objective} has {' and '.join(others)} too; {UNMASKED}"
        )


def check_unmasked(
    batch_type: type[ExampleBatch], objective: str, settings: Mapping[str, Any], where: str = MDS
) -> None:
    """Raise SettingsError unless the examples have only ids and the settings leave them unmasked.

    where: what the message calls the place where the examples are to be stored.
    """
    check_has_only_ids(batch_type, objective, where)
    if has_group(batch_type, MASKS) and settings.get("masks", True):
        raise SettingsError(f"{where} holds ids without masks; {UNMASKED}")


def read_layout_from_manifest(manifest: dict[str, Any], name: str) -> ShardLayout:
    """Read the layout of a dataset's examples from the JSON of its manifest.

    name: the shard, for errors.
    """
    records = manifest["settings"]
    objective = find_objective_of_file(records["objective"]["name"], name)
    sizes = {size: records["objective"][size] for size in objective.batch_type.sizes()}
    padding_id = records["container"].get("padding_id", 0)
    return ShardLayout.of_sizes(sizes, objective=objective.name, padding_id=padding_id)
