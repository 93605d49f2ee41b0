"""The division of the model by a plan, as one worker sees it."""

from dataclasses import dataclass

from trainer.collectives.collective import Collective
from trainer.extensions.splitting.plan.plan import Plan, StagePlan
from trainer.update.strategy import Division


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedDivision(Division):
    """The division of a plan: worker ``rank`` has copy ``rank % copies`` of stage ``rank // copies``."""

    plan: Plan


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


def planned_stages(division: Division) -> tuple[StagePlan, ...]:
    """The stages of the plan by which the model is split."""
    assert isinstance(division, PlannedDivision)
    return division.plan.stages
