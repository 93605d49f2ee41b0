"""The settings that all tasks of a packing run share, and the resulting placement of examples."""

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
    """A packed dataset to be written. Picklable, so that it can be sent to worker processes.

    layout: layout of the packed rows.
    names: names of the shards.
    corpus: a single manifest entry that summarises all inputs.
    folder: where scratch files are written. None for ``unfinished/``, where a later run finds them.
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
        """Object that finds the row of each example and its place in the row. It is made once per process."""
        return _make_placement(self.plan, self.seed)


@lru_cache(maxsize=1)
def _make_placement(plan: PackPlan, seed: int) -> Placement:
    return Placement(plan, seed)
