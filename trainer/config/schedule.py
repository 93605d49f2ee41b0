"""Section of the learning rate: number of updates, schedule, warm-up."""

from collections.abc import Mapping
from dataclasses import dataclass

from trainer.config.section import Section, check

ENDS_IN_WARMUP = ("habana-tf",)
"""Schedules whose program prints commands for trial runs that end before the warm-up does."""


@dataclass(frozen=True, kw_only=True)
class ScheduleSection(Section):
    """The learning rate as a function of the update; None: the schedule's own value."""

    steps: int = 1000  # updates of the whole schedule
    num_train_epochs: float | None = None  # gives steps once the data are known; None: steps are given
    lr_schedule: str | None = None  # None: the optimiser's usual one, see Config.schedule_name
    base_learning_rate: float = 0.001  # after warm-up
    warmup: int | float = 0  # an integer: updates; else a share of steps, 0 <= x < 1
    start_warmup_step: int = 0  # may be negative
    power: float | None = None
    decay_steps: int | None = None  # updates
    decay_rate: float | None = None
    lr_schedule_by_step: Mapping[str, float] | None = None  # rates by first update

    def __post_init__(self) -> None:
        super().__post_init__()
        wanted = "expected an integer (updates) or a share of steps, 0 <= x < 1"
        check(isinstance(self.warmup, int) or self.warmup < 1, f"warmup is {self.warmup}, {wanted}")
        wanted = f"expected fewer than steps ({self.steps}); for a short trial run give steps_this_run"
        ends_in_warmup = self.lr_schedule in ENDS_IN_WARMUP and isinstance(self.warmup, int)
        rises = self.warmup_steps < self.steps or ends_in_warmup
        check(rises, f"warmup is {self.warmup_steps} updates, {wanted}")

    @property
    def warmup_steps(self) -> int:
        """Warm-up in updates."""
        return self.warmup if isinstance(self.warmup, int) else int(self.warmup * self.steps + 1e-9)
