"""Optimisers and schedules of Graphcore's programs."""

import math
from collections.abc import Mapping

from trainer.config.schedules.form import Preset, Schedule, ScheduleKind, Warmup, add_warmup

_LEAST_RATE = 1e-7


def make_polynomial_schedule(rate: float, steps: int, warmup: Warmup) -> Schedule:
    """Return a schedule with a linear warm-up to the rate, then a linear decay to 1e-7."""
    falling = steps - warmup.updates
    return add_warmup(rate, warmup.updates, lambda step: max(_LEAST_RATE, rate * (steps - step) / falling))


def make_exponential_schedule(
    rate: float, steps: int, warmup: Warmup, *, decay_steps: int, decay_rate: float
) -> Schedule:
    """Return a schedule with a linear warm-up, then a decay in steps.

    The rate is multiplied by exp(-decay_rate) after every ``decay_steps`` updates.
    """

    def stepwise_rate(step: int) -> float:
        return rate * math.exp(-decay_rate * ((step - warmup.updates) // decay_steps))

    return add_warmup(rate, warmup.updates, stepwise_rate)


def make_custom_schedule(
    rate: float, steps: int, warmup: Warmup, *, lr_schedule_by_step: Mapping[str, float]
) -> Schedule:
    """Return a schedule whose rates come from a table. ``rate``, ``steps`` and ``warmup`` are ignored.

    lr_schedule_by_step: {first update as text: rate}. A rate applies until the next update in the table.
    """
    table = sorted((int(step), float(value)) for step, value in lr_schedule_by_step.items())
    return lambda step: max((since, value) for since, value in table if since <= step)[1]


POLYNOMIAL_DECAY = ScheduleKind(formula=make_polynomial_schedule)
NATURAL_EXPONENTIAL, CUSTOM = (
    ScheduleKind(formula=make_exponential_schedule),
    ScheduleKind(formula=make_custom_schedule),
)

LAMB = Preset(debias=False)

LAMB_PYTORCH = Preset(decay_skips=("bias", "LayerNorm"), trust="weights")
