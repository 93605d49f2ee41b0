"""Examples that MDS can hold: ids alone, not masked. Checked before anything is written."""

from collections.abc import Mapping
from typing import Any

from bertdata.errors import SettingsError
from bertdata.examples.groups import MASKS, WORD_STARTS, has_group
from bertdata.records import IDS, ExampleBatch
from bertdata.shards.mds.names import MDS

UNMASKED = "make the dataset with bertdata create --objective mlm --no-masks"


def check_kind(kind: type[ExampleBatch], objective: str, where: str = MDS) -> None:
    """SettingsError unless the objective's examples have ids, and perhaps masks, but nothing else."""
    if has_group(kind, WORD_STARTS):
        raise SettingsError(
            f"{where} holds ids alone; objective {objective} has word starts too; create --format mds and "
            "convert --to mds leave them out"
        )
    others = [group.name for group in kind.groups() if group not in (IDS, MASKS)]
    if others:
        raise SettingsError(
            f"{where} holds ids alone; objective {objective} has {' and '.join(others)} too; {UNMASKED}"
        )


def check_unmasked(
    kind: type[ExampleBatch], objective: str, settings: Mapping[str, Any], where: str = MDS
) -> None:
    """SettingsError as from check_kind, and for settings that mask examples."""
    check_kind(kind, objective, where)
    if has_group(kind, MASKS) and settings.get("masks", True):
        raise SettingsError(f"{where} holds ids without masks; {UNMASKED}")
