"""The place of a worker among all: its stage of the model and its copy of that stage."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from trainer.collectives.collective import Collective


class StagePlan(Protocol):
    """A stage of a plan: whether its layers compute their activations again, and its weights are divided."""

    @property
    def recomputes(self) -> bool: ...

    @property
    def sharded(self) -> bool: ...


class SplitPlan(Protocol):
    """A plan as the core sees it: its strategy, and its stages in order."""

    @property
    def strategy(self) -> str: ...

    @property
    def stages(self) -> Sequence[StagePlan]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Division:
    """Worker ``rank`` has copy ``rank % copies`` of stage ``rank // copies``; of one stage, all workers.

    Copies are given different examples; the stages of a copy the same ones. plan: of a model that is split;
    None: each worker has the whole model.
    """

    rank: int
    copies: int
    stages: int = 1
    plan: SplitPlan | None = None

    @property
    def stage(self) -> int:
        return self.rank // self.copies

    @property
    def copy(self) -> int:
        return self.rank % self.copies

    @property
    def is_split(self) -> bool:
        """True if no worker has the whole model."""
        return self.plan is not None and self.plan.strategy != "replicated"

    @property
    def is_sharded(self) -> bool:
        """True if this worker has a part of each weight of its stage."""
        return self.plan is not None and self.plan.stages[self.stage].sharded

    @property
    def is_last_stage(self) -> bool:
        """True if this worker has the heads, and with them the results."""
        return self.stage == self.stages - 1


def whole(workers: Collective) -> Division:
    """The division of a model that each worker has as a whole."""
    return Division(rank=workers.rank, copies=workers.size)
