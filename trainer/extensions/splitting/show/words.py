"""Words for the parts of a plan: layers, devices, numbers."""

from trainer.extensions.splitting.plan.plan import Plan, StagePlan


def layers_of(stage: StagePlan) -> str:
    """The stage's layers, counted from 0: "4", "4-7"."""
    return _from_to(stage.first, stage.last - 1)


def devices_of(plan: Plan, stage: int) -> str:
    """The devices that have a copy of the stage, by rank: "4", "4-5"."""
    first = stage * plan.copies
    return _from_to(first, first + plan.copies - 1)


def four_digits(value: float) -> str:
    """The value with four digits, or all before the point: "0.05375", "12,345"."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _from_to(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
