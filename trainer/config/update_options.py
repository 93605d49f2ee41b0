"""Sections of an update's details: the optimiser, the loss scale, the formula of the rate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bertdata.config.declared import setting
from trainer.config.section import Section, check, shown
from trainer.config.updates import Preset

BY_UPDATE = {"propertyNames": {"pattern": "^(0|[1-9][0-9]*)$"}}
"""JSON Schema's keywords of an object whose names are the updates from which its values hold."""


@dataclass(frozen=True, kw_only=True)
class OptimiserSection(Section):
    """Settings of the optimiser. None: its preset's."""

    beta1: float | None = setting(
        None, "decay rate of the gradient's average (default: the optimiser's)", least=0, below=1
    )
    beta2: float | None = setting(
        None, "decay rate of the squared gradient's average (default: the optimiser's)", least=0, below=1
    )
    optimiser_epsilon: float | None = setting(
        None, "small number that is added to denominators (default: the optimiser's)", above=0
    )
    weight_decay: float | None = shown(None, "weight decay (default: the optimiser's)", least=0)
    decay_skips: Sequence[str] | None = setting(
        None, "parts of the names of weights that do not decay: A,B or a JSON list (default: the optimiser's)"
    )
    use_debiasing: bool | None = setting(
        None, "bias correction, for lamb-graphcore (default: the optimiser's)"
    )
    momentum: float | None = setting(
        None, "momentum, for the optimiser momentum (default: the optimiser's)", least=0, below=1
    )

    def changed(self, preset: Preset) -> Preset:
        """The preset with the settings that are given."""
        beta1, beta2 = preset.betas
        settings: dict[str, Any] = {
            "betas": (
                beta1 if self.beta1 is None else self.beta1,
                beta2 if self.beta2 is None else self.beta2,
            ),
            "eps": self.optimiser_epsilon,
            "weight_decay": self.weight_decay,
            "decay_skips": None if self.decay_skips is None else tuple(self.decay_skips),
            "debias": self.use_debiasing,
            "momentum": self.momentum,
        }
        return replace(preset, **{name: value for name, value in settings.items() if value is not None})


@dataclass(frozen=True, kw_only=True)
class ScalingSection(Section):
    """The loss scale of fp16: fixed, or adjusted during training within bounds."""

    loss_scaling: float = setting(0.0, "fixed loss scale for fp16; 0: adjusted during training", least=0)
    init_loss_scale: float = setting(65536.0, "initial value of an adjusted loss scale", above=0)
    min_loss_scale: float = setting(1.0, "lower bound of an adjusted loss scale", above=0)
    max_loss_scale: float = setting(16777216.0, "upper bound of an adjusted loss scale", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        least, first, most = self.min_loss_scale, self.init_loss_scale, self.max_loss_scale
        wanted = f"expected min_loss_scale ({least:g}) to max_loss_scale ({most:g})"
        check(least <= first <= most, f"init_loss_scale is {first:g}, {wanted}")


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
