"""Strategies for models that no worker has as a whole, and the parts of weights that a worker holds."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from trainer.collectives.collective import Collective
from trainer.extensions.splitting.plan.plan import Plan, StagePlan
from trainer.update.inference import Inference
from trainer.update.optimiser import Optimiser
from trainer.update.strategy import Division, Strategy


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedDivision(Division):
    """The division of a plan: worker ``rank`` has copy ``rank % copies`` of stage ``rank // copies``."""

    plan: Plan

    @property
    def stage_plan(self) -> StagePlan:
        """The plan of this worker's stage."""
        return self.plan.stages[self.stage]


def by_plan(workers: Collective, plan: Plan) -> PlannedDivision:
    """The division of a plan for so many workers."""
    stage, copy = divmod(workers.rank, plan.copies)
    return PlannedDivision(
        copy=copy,
        copies=plan.copies,
        stage=stage,
        stages=len(plan.stages),
        strategy=plan.strategy,
        recomputes=plan.stages[stage].recomputes,
        plan=plan,
    )


def planned_stage(division: Division) -> StagePlan:
    """The plan of a worker's stage, where the model is split."""
    assert isinstance(division, PlannedDivision)
    return division.stage_plan


class WeightPart(NamedTuple):
    """Rows of a weight, or of a moment (KIND/NAME), that this worker holds.

    shape: that of the whole; without dimensions it counts as one row. start: number of the first row.
    rows: the values themselves, in whose place others may be put; there may be none. writes: False where
    another worker writes the same rows into a checkpoint.
    """

    name: str
    shape: tuple[int, ...]
    start: int
    rows: Tensor
    writes: bool


def moments_of(optimiser: Optimiser) -> Iterator[tuple[Tensor, str, Tensor]]:
    """Each weight's moments with their names, in the order of the groups, zeros before the first step."""
    for group in optimiser.param_groups:
        names = optimiser.moments_of(optimiser.settings(group))
        for weight in group["params"]:
            yield from ((weight, name, optimiser.moment(weight, name)) for name in names)


class SplitInference(Inference, ABC):
    """Evaluation of a model that no worker has as a whole."""

    @abstractmethod
    def weight_parts(self) -> Sequence[WeightPart]:
        """The weights that this worker holds, in the order of the model."""


class SplitStrategy(Strategy):
    """Training of a model that no worker has as a whole."""

    @abstractmethod
    def weight_parts(self) -> Sequence[WeightPart]:
        """The weights that this worker holds, in the order of the model."""

    @abstractmethod
    def moment_parts(self) -> Sequence[WeightPart]:
        """The optimiser's tensors that this worker holds, zeros before the first update."""

    @property
    def optimiser(self) -> Optimiser:
        """Our own optimiser: a device with another one takes whole models only."""
        assert isinstance(self.step.optimiser, Optimiser)
        return self.step.optimiser

    def set_applied(self, applied: int) -> None:
        """Set the count of updates that changed the weights, of the phase and of the optimiser."""
        self.step.applied = applied
        for group in self.optimiser.param_groups:
            group["step"] = applied

    def moments(self) -> dict[str, Tensor]:
        raise AssertionError("no worker has all moments of a split model")

    def load_moments(self, moments: dict[str, Tensor], applied: int) -> None:
        raise AssertionError("no worker has all moments of a split model")
