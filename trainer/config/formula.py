"""Section of the numbers that only some schedules' formulas have."""

from collections.abc import Mapping
from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.section import BY_UPDATE, Section


@dataclass(frozen=True, kw_only=True)
class FormulaSection(Section):
    """Numbers of a schedule's formula. None: the schedule's own value."""

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
