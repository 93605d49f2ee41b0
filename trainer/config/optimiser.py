"""Section of the optimiser: settings in the place of its preset's."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bertdata.config.declared import setting
from trainer.config.section import Section, shown
from trainer.config.update import Preset


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
