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

    decay_skips: parts of names. A weight whose name contains such a part has no weight decay.
    trust: which weights have a trust ratio, that is, LAMB multiplies their update by (norm of the weight /
    norm of the update). Its values are "all", "none", "named" (weights that decay_skips does not match),
    "decayed" (weights with a weight decay other than 0) and "weights" (all except biases).
    decays_by_share: True if weight decay is multiplied by (learning rate / base rate) in each update, instead
    of by the learning rate.
    epsilon_in: where eps is added. Let v be the running mean of squared gradients. With "corrected", eps is
    added to the root of the bias-corrected v. With "uncorrected", it is added to the root of v before bias
    correction. With "square", the square of eps is added to v.
    schedule: the learning-rate schedule that the optimiser's authors use, which is the default of
    lr_schedule.
    clipping: how the optimiser's authors clip gradients, which is the default of clipping.
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
        """Return whether LAMB multiplies the update of the weight of this name by a trust ratio."""
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
        """Return the warm-up for a value of the key ``warmup``.

        warmup: an int is a number of updates, a float is a fraction of ``steps``.
        steps: number of all updates.

        The number of updates is rounded down. A product within 1e-6 below a whole number counts as that
        number, since 0.29 * 100 is slightly less than 29.
        """
        if isinstance(warmup, int):
            return cls(warmup, warmup / steps)
        return cls(math.floor(warmup * steps + 1e-6), warmup)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleKind:
    """A formula for a learning-rate schedule, and how the program that it comes from uses it.

    formula: function that makes the schedule. Its arguments are the base rate, the number of updates and the
    warm-up. Its keyword arguments are configuration keys.
    may_end_in_warmup: True if training may be shorter than its warm-up. The program has published commands
    for short trials in which it is.
    rate_of_one_worker: True if the program multiplies the base rate by the number of workers.
    """

    formula: Callable[..., Schedule]
    may_end_in_warmup: bool = False
    rate_of_one_worker: bool = False

    @property
    def defaults(self) -> dict[str, Any]:
        """Configuration keys that the formula reads, and their defaults.

        The default ``Parameter.empty`` means that the user must set the key.
        """
        parameters = signature(self.formula).parameters.values()
        return {each.name: each.default for each in parameters if each.kind is Parameter.KEYWORD_ONLY}


def add_warmup(rate: float, rising: int, after: Schedule, start: int = 0) -> Schedule:
    """Return a schedule that begins with a linear warm-up and goes on with another schedule.

    rate: learning rate at the end of the warm-up.
    rising: number of steps of the warm-up.
    after: schedule after the warm-up. It counts steps from the beginning of training.
    start: step at which the warm-up begins with a rate of 0.
    """
    if rising == 0:  # without a warm-up, start has no effect
        return after
    return lambda step: rate * (step - start) / rising if step - start < rising else after(step)


def make_polynomial_decay(rate: float, steps: int, power: float) -> Callable[[float], float]:
    """Return a function that computes the learning rate of a step. The rate falls from ``rate`` at step 0 to
    0 at step ``steps``.

    power: exponent of the polynomial. 1 is a linear fall.
    """
    return lambda step: rate * math.pow(max(0.0, 1 - step / steps), power)
