"""Configuration sections of the learning rate: the schedule, the numbers in its formula, and recipes whose
phases are counted in tokens.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bertdata.config.declared import setting
from bertdata.config.settings import require
from trainer.config.sections.section import Section, declare_common_key, declare_plugin_key

BY_UPDATE = {"propertyNames": {"pattern": "^(0|[1-9][0-9]*)$"}}
"""JSON Schema keywords of an object whose keys are numbers of updates. A value applies from the update of its
key.
"""

SHAPES = ("1-sqrt", "linear", "cosine")


@dataclass(frozen=True, kw_only=True)
class ScheduleSection(Section):
    """Keys about the learning rate and the number of updates."""

    steps: int = declare_common_key(1000, "number of updates to train for", least=1, by_phase=True)
    num_train_epochs: float | None = declare_common_key(
        None,
        "passes over the training data, in place of steps (default: steps)",
        above=0,
    )
    epoch_rounding: str = setting(
        "up",
        "rounding of the number of updates in num_train_epochs: up; down, as in Google's programs; or "
        "each_up, which rounds up the updates of one epoch, as transformers does",
        ("up", "down", "each_up"),
    )
    lr_schedule: str | None = declare_plugin_key(
        "schedule",
        None,
        "learning-rate schedule (default: the optimiser's usual schedule)",
        common=True,
    )
    base_learning_rate: float = declare_common_key(
        0.001, "learning rate after warm-up", above=0, by_phase=True
    )
    warmup: int | float = declare_common_key(
        0,
        "length of the learning rate's warm-up: a whole number of updates, or a share of steps (0 <= x < 1)",
        least=0,
        by_phase=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            isinstance(self.warmup, int) or self.warmup < 1,
            f"warmup is {self.warmup}, expected an integer (updates) or a share of steps, 0 <= x < 1",
        )

    def updates_of(
        self, epochs: float, examples: int, update_examples: int, *, step: int = 0, trained: int = 0
    ) -> int:
        """Return the number of updates in a number of epochs. It is at least 1.

        The key epoch_rounding says how to round. For example, 3 epochs of 405 examples with 8 examples per
        update are 151.9 updates. The value "up" gives 152 and "down" gives 151. The value "each_up" rounds
        each epoch up, which gives 3 x 51 = 153.

        After a resume, the batch size may be another. Then only the remaining examples are divided by
        update_examples. In the example, 100 updates of 4 examples leave 815 of 1,215 examples, which are 102
        more updates of 8.

        epochs: number of epochs, which may be a fraction.
        examples: number of examples in the training data.
        update_examples: number of examples in an update.
        step: number of updates done before the resume.
        trained: number of examples in these updates.
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
    """Keys for the numbers in a schedule's formula. None means the schedule's usual value."""

    start_warmup_step: int = setting(
        0, "for the schedule mlperf: update at which warm-up starts; may be negative", by_phase=True
    )
    steps_per_update: int = setting(
        1,
        "for the schedule mlperf: number of steps that MLPerf's program counts in an update. The learning "
        "rate of an update is the rate of its last step, and checkpoints and logs count steps",
        least=1,
    )
    power: float | None = setting(None, "exponent of a polynomial decay (default: the schedule's)", above=0)
    decay_steps: int | None = setting(
        None,
        "for the schedule natural_exponential: number of updates between decays of the learning rate",
        least=1,
    )
    decay_rate: float | None = setting(
        None,
        "for the schedule natural_exponential: exponent r of a decay, which multiplies the learning rate "
        "by e^-r",
        least=0,
    )
    lr_schedule_by_step: Mapping[str, float] | None = setting(
        None,
        'for the schedule custom: learning rate from each update on, as JSON: {"0": 1e-4, "100": 1e-5}',
        least=0,
        keywords={"required": ["0"]} | BY_UPDATE,
    )


@dataclass(frozen=True, kw_only=True)
class RecipeSection(Section):
    """Keys about phases whose length is counted in tokens, batch sizes that grow, and a learning rate that
    falls at the end.
    """

    lr_decay: int | float = setting(
        0,
        "for the schedule trapezoidal: length of the learning rate's fall at the end, as a whole number "
        "of updates or a share of steps (0 <= x <= 1)",
        least=0,
        common=True,
        by_phase=True,
    )
    lr_decay_shape: str = setting(
        SHAPES[0],
        "for the schedule trapezoidal: shape of the learning rate's fall, 1-sqrt, linear or cosine",
        SHAPES,
    )
    lr_end_share: float = setting(
        0.0,
        "for the schedule trapezoidal: learning rate at the end, as a share of base_learning_rate",
        least=0,
        most=1,
        by_phase=True,
    )
    train_tokens: int | None = setting(
        None,
        "number of tokens to train on, in place of steps; converted to updates by the mean number of "
        "tokens in a row",
        least=1,
        common=True,
        by_phase=True,
    )
    warmup_tokens: int | None = setting(
        None,
        "number of tokens in the learning rate's warm-up, in place of warmup; converted to updates by the "
        "mean number of tokens in a row",
        least=1,
        common=True,
        by_phase=True,
    )
    batch_warmup_from: int | None = setting(
        None,
        "rows (examples, or packed rows) in the first update, over all workers; the batch then grows by one "
        "micro-batch at a time (default: all updates have the same size)",
        least=1,
        by_phase=True,
    )
    batch_warmup_tokens: int | None = setting(
        None,
        "number of tokens over which the batch grows; converted to rows by the mean number of tokens in a "
        "row",
        least=1,
        by_phase=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            isinstance(self.lr_decay, int) or self.lr_decay <= 1,
            f"lr_decay is {self.lr_decay}, expected an integer (updates) or a share of steps, 0 <= x <= 1",
        )
        both = (self.batch_warmup_from is None) == (self.batch_warmup_tokens is None)
        require(both, "batch_warmup_from and batch_warmup_tokens need each other")

    def list_idle_keys(self) -> list[str]:
        """Return the keys that have no effect without lr_decay."""
        return [] if self.lr_decay else ["lr_decay_shape", "lr_end_share"]
