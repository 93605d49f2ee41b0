"""The settings that all tasks of a packing run share."""

from dataclasses import dataclass, field
from functools import lru_cache

from bertdata.dataset.manifest import InputEntry
from bertdata.dataset.writer import Dataset
from bertdata.packing.pack_plan import PackPlan
from bertdata.packing.placement import Placement
from bertdata.packing.shard_cuts import RowCuts
from bertdata.records import ShardLayout


@dataclass(frozen=True, kw_only=True, slots=True)
class PackJob:
    """Everything that a task needs to know to write a packed dataset. It can be pickled for worker processes.

    dataset: the packed dataset, to which finished shards are added.
    layout: record layout of the packed rows.
    format: container of the shards.
    plan: which lengths share a row.
    seed: decides the order of examples and rows.
    cuts: which rows belong to which shard.
    names: names of the shards.
    corpus: a single manifest entry that summarises all inputs.
    folder: directory of the scratch files. None means ``unfinished/``, where a later run finds them.
    """

    dataset: Dataset
    layout: ShardLayout
    format: str
    plan: PackPlan
    seed: int
    cuts: RowCuts
    names: tuple[str, ...] = field(repr=False)
    corpus: InputEntry
    folder: str | None = None

    def placement(self) -> Placement:
        """Return the object that finds the row and the place of each example. Each process makes it once."""
        return _make_placement(self.plan, self.seed)


@lru_cache(maxsize=1)
def _make_placement(plan: PackPlan, seed: int) -> Placement:
    return Placement(plan, seed)
