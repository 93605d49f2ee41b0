"""The learning rate: its warm-up, the form of a schedule, and the section of their keys.

A new schedule is a formula in ``trainer.config.updates`` and a line of the registry.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

from trainer.config.section import Section, check, shown
from trainer.registry import CORE

Schedule = Callable[[int], float]
"""The learning rate as a function of the update, counted from 0."""


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

    @property
    def needed(self) -> list[str]:
        """The keys that must be given."""
        return [name for name, default in self.defaults.items() if default is Parameter.empty]

    def find_warmup(self, warmup: int | float, steps: int) -> Warmup:
        """The warm-up. SettingsError unless it ends before the schedule does."""
        found = Warmup.of(warmup, steps)
        wanted = f"expected fewer than steps ({steps}); for a short trial run give steps_this_run"
        ends = found.updates < steps or self.may_end_in_warmup
        check(ends, f"warmup is {found.updates} updates, {wanted}")
        return found


@dataclass(frozen=True, kw_only=True)
class ScheduleSection(Section):
    """The learning rate as a function of the update."""

    steps: int = shown(1000, "number of updates of the schedule", least=1, by_phase=True)
    num_train_epochs: float | None = shown(
        None,
        "passes over the training data; gives the number of updates, unless steps are given (default: steps)",
        above=0,
    )
    lr_schedule: str | None = shown(
        None,
        "name of the learning-rate schedule (default: the optimiser's usual one)",
        tuple(CORE["schedule"]),
    )
    base_learning_rate: float = shown(0.001, "learning rate after warm-up", above=0, by_phase=True)
    warmup: int | float = shown(
        0, "warm-up: an integer number of updates, or a share of steps (0 <= x < 1)", least=0, by_phase=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        wanted = "expected an integer (updates) or a share of steps, 0 <= x < 1"
        check(isinstance(self.warmup, int) or self.warmup < 1, f"warmup is {self.warmup}, {wanted}")


def warmed_up(rate: float, rising: int, after: Schedule, start: int = 0) -> Schedule:
    """Linear warm-up from 0 at step ``start`` to the rate after ``rising`` steps, then ``after``."""
    if rising == 0:  # whatever the start
        return after
    return lambda step: rate * (step - start) / rising if step - start < rising else after(step)


def decay(rate: float, steps: int, power: float) -> Schedule:
    """Polynomial decay from the rate at step 0 to 0 at the last step."""
    return lambda step: rate * math.pow(max(0.0, 1 - step / steps), power)
