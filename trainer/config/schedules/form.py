"""The forms of optimiser presets and learning-rate schedules.

A new one is declared in the module of its program, with a line in ``trainer.plugins.TABLE``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

Schedule = Callable[[int], float]
"""The learning rate as a function of the update, counted from 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """Settings of an optimiser.

    decay_skips: parameters whose name contains one of these do not decay.
    trust: the parameters with a trust ratio: "all", "none", those that decay_skips does not match
    ("named"), those whose decay is not 0 ("decayed"), or all but biases ("weights").
    decays_by_share: weight decay is multiplied by the rate's share of the base rate, not by the rate.
    epsilon_in: where eps is added, of the average v of the squared gradient: "corrected", to the root of the
    bias-corrected v; "uncorrected", to the root of v before the correction; "square", its square to v.

    schedule, clipping: what the optimiser's authors use with it, where a configuration names none.
    """

    kind: str = "lamb"
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-6
    weight_decay: float = 0.01
    decay_skips: tuple[str, ...] = ()
    trust: str = "all"
    debias: bool = True
    momentum: float = 0.0
    decays_by_share: bool = False
    epsilon_in: str = "corrected"
    schedule: str = "polynomial_decay"
    clipping: str = "none"

    def decays(self, name: str) -> bool:
        return not any(part in name for part in self.decay_skips)

    def trusts(self, name: str) -> bool:
        if self.trust in ("all", "none"):
            return self.trust == "all"
        if self.trust == "weights":
            return "bias" not in name
        return self.decays(name) and (self.trust == "named" or self.weight_decay != 0)


@dataclass(frozen=True, slots=True)
class Warmup:
    """Warm-up of the learning rate: its updates, and their fraction of all updates."""

    updates: int
    fraction: float

    @classmethod
    def of(cls, warmup: int | float, steps: int) -> "Warmup":
        """An integer is a number of updates, any other number a fraction of ``steps``, rounded down.

        A product within 1e-6 below an integer counts as that integer: 0.29 * 100 is a little below 29.
        """
        if isinstance(warmup, int):
            return cls(warmup, warmup / steps)
        return cls(math.floor(warmup * steps + 1e-6), warmup)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleKind:
    """A schedule's formula and how its program reads the settings.

    formula: makes the schedule of base rate, number of updates and warm-up; its keyword arguments are the
    keys that it reads. may_end_in_warmup: the program prints commands for trial runs that end before the
    warm-up does. rate_of_one_worker: the base rate is multiplied by the number of workers.
    """

    formula: Callable[..., Schedule]
    may_end_in_warmup: bool = False
    rate_of_one_worker: bool = False

    @property
    def defaults(self) -> dict[str, Any]:
        """The keys that the formula reads with their defaults, ``Parameter.empty`` where it has none."""
        parameters = signature(self.formula).parameters.values()
        return {each.name: each.default for each in parameters if each.kind is Parameter.KEYWORD_ONLY}


def warmed_up(rate: float, rising: int, after: Schedule, start: int = 0) -> Schedule:
    """Linear warm-up from 0 at step ``start`` to the rate after ``rising`` steps, then ``after``."""
    if rising == 0:  # whatever the start
        return after
    return lambda step: rate * (step - start) / rising if step - start < rising else after(step)


def decay(rate: float, steps: int, power: float) -> Callable[[float], float]:
    """Polynomial decay from the rate at step 0 to 0 at the last step."""
    return lambda step: rate * math.pow(max(0.0, 1 - step / steps), power)
