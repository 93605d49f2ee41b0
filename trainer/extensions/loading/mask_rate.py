"""The share of ids to mask over training: constant, or a schedule of the update's number."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from bertdata.examples.masking.settings import check_rate
from trainer.config.masking import CONSTANT, MaskingSection

_DECIMALS = 6  # of a scheduled rate, so that it does not depend on a machine's cosine


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskRate:
    """A rate from ``start`` at the first update to ``end`` at the last of ``updates``.

    schedule: constant, linear, cosine, or steps: ``levels`` equal stretches of constant rates.
    """

    start: float
    end: float
    schedule: str = CONSTANT
    levels: int = 2
    updates: int = 1

    def __post_init__(self) -> None:
        check_rate("masked_lm_prob", self.start)
        check_rate("masked_lm_prob_end", self.end)

    @classmethod
    def of(cls, section: MaskingSection, updates: int) -> "MaskRate":
        """The configured rate of a phase of so many updates."""
        end = section.masked_lm_prob_end
        return cls(
            start=section.masked_lm_prob,
            end=section.masked_lm_prob if end is None else end,
            schedule=section.masked_lm_prob_schedule,
            levels=section.masked_lm_prob_steps,
            updates=updates,
        )

    @property
    def largest(self) -> float:
        return max(self.start, self.end)

    def at(self, update: int) -> float:
        """The rate of update ``update``, counted from 0; after the last one it stays."""
        if self.schedule == CONSTANT:
            return self.start
        rate = self.start + (self.end - self.start) * _PROGRESS[self.schedule](self, update)
        return round(rate, _DECIMALS)

    def _linear(self, update: int) -> float:
        return min(update / max(self.updates - 1, 1), 1)

    def _cosine(self, update: int) -> float:
        return (1 - math.cos(math.pi * self._linear(update))) / 2

    def _steps(self, update: int) -> float:
        level = min(update * self.levels // self.updates, self.levels - 1)
        return level / (self.levels - 1)


_PROGRESS: dict[str, Callable[[MaskRate, int], float]] = {
    "linear": MaskRate._linear,
    "cosine": MaskRate._cosine,
    "steps": MaskRate._steps,
}
"""The way from start to end that is made at an update, from 0 to 1, by schedule."""
