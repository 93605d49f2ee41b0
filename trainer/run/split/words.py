"""Words for the parts of a plan: layers, devices."""

from trainer.strategies.split.plan import Plan, StagePlan


def layers_of(stage: StagePlan) -> str:
    """The stage's layers, counted from 0: "4", "4-7"."""
    return _from_to(stage.first, stage.last - 1)


def devices_of(plan: Plan, stage: int) -> str:
    """The devices that have a copy of the stage, by rank: "4", "4-5"."""
    first = stage * plan.copies
    return _from_to(first, first + plan.copies - 1)


def _from_to(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
