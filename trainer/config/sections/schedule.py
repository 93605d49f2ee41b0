"""Sections of the learning rate: the schedule, its formula, recipes that count tokens."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bertdata.config.declared import setting
from bertdata.config.settings import check
from trainer.config.sections.section import Section, named, shown

BY_UPDATE = {"propertyNames": {"pattern": "^(0|[1-9][0-9]*)$"}}
"""JSON Schema's keywords of an object whose names are the updates from which its values hold."""

SHAPES = ("1-sqrt", "linear", "cosine")


@dataclass(frozen=True, kw_only=True)
class ScheduleSection(Section):
    """The learning rate as a function of the update."""

    steps: int = shown(1000, "number of updates of the schedule", least=1, by_phase=True)
    num_train_epochs: float | None = shown(
        None,
        "passes over the training data; gives the number of updates, unless steps are given (default: steps)",
        above=0,
    )
    epoch_rounding: str = setting(
        "up",
        "updates of num_train_epochs that are no whole number: up; down, as Google's programs; or each_up, "
        "those of one epoch rounded up, times the epochs, as transformers",
        ("up", "down", "each_up"),
    )
    lr_schedule: str | None = named(
        "schedule",
        None,
        "name of the learning-rate schedule (default: the optimiser's usual one)",
        common=True,
    )
    base_learning_rate: float = shown(0.001, "learning rate after warm-up", above=0, by_phase=True)
    warmup: int | float = shown(
        0, "warm-up: an integer number of updates, or a share of steps (0 <= x < 1)", least=0, by_phase=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        wanted = "expected an integer (updates) or a share of steps, 0 <= x < 1"
        check(isinstance(self.warmup, int) or self.warmup < 1, f"warmup is {self.warmup}, {wanted}")

    def updates_of(
        self, epochs: float, examples: int, update_examples: int, *, step: int = 0, trained: int = 0
    ) -> int:
        """The number of updates of so many epochs, each of ``update_examples`` of the examples: at least 1.

        405 examples, 8 an update, 3 epochs: 151.9 updates are 152, down 151, each_up 3 x 51 = 153.

        step, trained: updates and examples of a run that goes on, whose updates may have had another size:
        what remains is counted in examples. After 100 updates of 4 there remain 815 examples: 102 of 8.
        """
        made = trained / update_examples
        if self.epoch_rounding == "down":
            left = math.floor(examples * epochs / update_examples - made)
        elif self.epoch_rounding == "each_up":
            left = math.ceil(math.ceil(examples / update_examples) * epochs - made)
        else:
            left = math.ceil(examples * epochs / update_examples - made)
        return max(1, step + max(0, left))


@dataclass(frozen=True, kw_only=True)
class FormulaSection(Section):
    """Numbers of a schedule's formula. None: the schedule's own value."""

    start_warmup_step: int = setting(
        0, "update at which warm-up starts, for mlperf; may be negative", by_phase=True
    )
    steps_per_update: int = setting(
        1,
        "for mlperf: steps that its program counts in an update, whose rate is that of the last of them; "
        "checkpoints and logs count them too",
        least=1,
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


@dataclass(frozen=True, kw_only=True)
class RecipeSection(Section):
    """Keys of a phase that is counted in tokens, whose updates grow, or whose rate falls at its end."""

    lr_decay: int | float = setting(
        0,
        "for trapezoidal: updates at the end of steps over which the rate falls, an integer number or a "
        "share of steps (0 <= x <= 1)",
        least=0,
        common=True,
        by_phase=True,
    )
    lr_decay_shape: str = setting(
        SHAPES[0], "for trapezoidal: course of that fall, 1-sqrt, linear or cosine", SHAPES
    )
    lr_end_share: float = setting(
        0.0,
        "for trapezoidal: the rate after steps updates, as a share of the base rate",
        least=0,
        most=1,
        by_phase=True,
    )
    train_tokens: int | None = setting(
        None,
        "tokens to train on, by the mean length of a row; gives the number of updates",
        least=1,
        by_phase=True,
    )
    warmup_tokens: int | None = setting(
        None,
        "tokens over which the rate rises, in place of warmup, by the mean length of a row",
        least=1,
        by_phase=True,
    )
    batch_warmup_from: int | None = setting(
        None,
        "rows (examples, or packed rows) of the first update over all workers; updates grow by a micro-batch "
        "at a time (default: all updates are of one size)",
        least=1,
        by_phase=True,
    )
    batch_warmup_tokens: int | None = setting(
        None, "tokens over which updates grow, by the mean length of a row", least=1, by_phase=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        wanted = "expected an integer (updates) or a share of steps, 0 <= x <= 1"
        check(isinstance(self.lr_decay, int) or self.lr_decay <= 1, f"lr_decay is {self.lr_decay}, {wanted}")
        both = (self.batch_warmup_from is None) == (self.batch_warmup_tokens is None)
        check(both, "batch_warmup_from and batch_warmup_tokens need each other")

    def idle(self) -> list[str]:
        """The keys of a fall of the rate that does not take place."""
        return [] if self.lr_decay else ["lr_decay_shape", "lr_end_share"]
