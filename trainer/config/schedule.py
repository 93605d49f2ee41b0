"""Section of the learning rate: number of updates, schedule, warm-up."""

from collections.abc import Mapping
from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.section import BY_UPDATE, Section, check

ENDS_IN_WARMUP = ("habana-tf",)
"""Schedules whose program prints commands for trial runs that end before the warm-up does."""


@dataclass(frozen=True, kw_only=True)
class ScheduleSection(Section):
    """The learning rate as a function of the update; None: the schedule's own value."""

    steps: int = setting(1000, "number of updates of the schedule", least=1, common=True, by_phase=True)
    num_train_epochs: float | None = setting(
        None,
        "passes over the training data; gives the number of updates, unless steps are given (default: steps)",
        above=0,
        common=True,
    )
    lr_schedule: str | None = setting(
        None,
        "name of the learning-rate schedule (default: the optimiser's usual one)",
        (
            "mlperf",
            "nvidia-poly",
            "nvidia-linear",
            "habana-tf",
            "polynomial_decay",
            "natural_exponential",
            "custom",
        ),
        common=True,
    )
    base_learning_rate: float = setting(
        0.001, "learning rate after warm-up", above=0, common=True, by_phase=True
    )
    warmup: int | float = setting(
        0,
        "warm-up: an integer number of updates, or a share of steps (0 <= x < 1)",
        least=0,
        common=True,
        by_phase=True,
    )
    start_warmup_step: int = setting(
        0, "update at which warm-up starts, for mlperf; may be negative", by_phase=True
    )
    power: float | None = setting(None, "exponent of a polynomial decay (default: the schedule's)", above=0)
    decay_steps: int | None = setting(None, "updates between two decays, for natural_exponential", least=1)
    decay_rate: float | None = setting(None, "rate of the decay, for natural_exponential", least=0)
    lr_schedule_by_step: Mapping[str, float] | None = setting(
        None,
        'learning rates by update, for custom: {"0": 1e-4, "100": 1e-5}',
        least=0,
        keywords={"required": ["0"]} | BY_UPDATE,
    )

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
