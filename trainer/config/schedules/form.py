"""Classes that describe optimiser presets and learning-rate schedules, and helpers to build a schedule.

A new preset or schedule is declared in the module of its program and listed in ``trainer.plugins.TABLE``.
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

    decay_skips: weights whose name contains one of these have no weight decay.
    trust: weights whose update LAMB multiplies by a trust ratio (the weight's norm / its update's norm):
    "all", "none", "named" (not matched by decay_skips), "decayed" (with a weight decay other than 0) or
    "weights" (all except biases).
    decays_by_share: in each update, weight decay is multiplied by learning rate / base rate, instead of by
    the learning rate.
    epsilon_in: where eps is added, with v the running mean of squared gradients. "corrected": to the root of
    the bias-corrected v. "uncorrected": to the root of v before bias correction. "square": its square to v.
    schedule, clipping: defaults of these two keys with this optimiser. They are what its authors use.
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
        """Return whether the weight of this name has weight decay."""
        return not any(part in name for part in self.decay_skips)

    def trusts(self, name: str) -> bool:
        """Return whether the weight of this name has a trust ratio."""
        if self.trust in ("all", "none"):
            return self.trust == "all"
        if self.trust == "weights":
            return "bias" not in name
        return self.decays(name) and (self.trust == "named" or self.weight_decay != 0)


@dataclass(frozen=True, slots=True)
class Warmup:
    """Length of the learning rate's warm-up, in updates and as a fraction of all updates."""

    updates: int
    fraction: float

    @classmethod
    def of(cls, warmup: int | float, steps: int) -> "Warmup":
        """Return the warm-up for the key ``warmup``: an int counts updates, a float is a share of ``steps``.

        The number of updates is rounded down. A product within 1e-6 below a whole number counts as that
        number, since 0.29 * 100 is slightly less than 29.
        """
        if isinstance(warmup, int):
            return cls(warmup, warmup / steps)
        return cls(math.floor(warmup * steps + 1e-6), warmup)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleKind:
    """A schedule's formula and how its program reads the settings.

    formula: function of base rate, number of updates and warm-up. Its keyword arguments are keys that it
    reads.
    may_end_in_warmup: training may be shorter than its warm-up, because the program's published trial
    commands have so few steps.
    rate_of_one_worker: the base rate in the settings is for one worker, and is multiplied by the number of
    workers.
    """

    formula: Callable[..., Schedule]
    may_end_in_warmup: bool = False
    rate_of_one_worker: bool = False

    @property
    def defaults(self) -> dict[str, Any]:
        """Keys that the formula reads, with their defaults.

        ``Parameter.empty`` means that the key must be set.
        """
        parameters = signature(self.formula).parameters.values()
        return {each.name: each.default for each in parameters if each.kind is Parameter.KEYWORD_ONLY}


def add_warmup(rate: float, rising: int, after: Schedule, start: int = 0) -> Schedule:
    """Return the schedule ``after`` with its first ``rising`` steps replaced by a linear rise.

    rate: learning rate at the end of the rise. start: step at which the rise begins with a rate of 0.
    """
    if rising == 0:  # without a warm-up, start has no effect
        return after
    return lambda step: rate * (step - start) / rising if step - start < rising else after(step)


def make_polynomial_decay(rate: float, steps: int, power: float) -> Callable[[float], float]:
    """Return a function from the step to a rate that falls from ``rate`` at step 0 to 0 at step ``steps``.

    power: exponent of the polynomial. 1 is a linear fall.
    """
    return lambda step: rate * math.pow(max(0.0, 1 - step / steps), power)
