"""Stochastic gradient descent with momentum, as PyTorch has it."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from trainer.update.optimiser import Numbers, Optimiser, Tensors

_DEFAULTS = {"lr": 1e-3, "momentum": 0.0, "weight_decay": 0.0, "trust": False}


class SgdSettings(NamedTuple):
    """Settings of a parameter group."""

    momentum: float
    weight_decay: float


class Sgd(Optimiser):
    """Per tensor w with gradient g, and an average b that starts at 0:

    b = momentum * b + g + weight_decay * w
    w = w - lr * b
    """

    kind = "sgd"
    usual = _DEFAULTS

    def settings(self, group: dict[str, Any]) -> SgdSettings:
        return SgdSettings(group["momentum"], group["weight_decay"])

    def moments_of(self, settings: SgdSettings) -> tuple[str, ...]:
        return ("momentum_buffer",) if settings.momentum else ()

    @staticmethod
    def fused(tensors: Tensors, numbers: Numbers, settings: SgdSettings) -> None:
        """A step by PyTorch's fused kernel."""
        assert isinstance(numbers.rate, Tensor)
        torch._fused_sgd_(
            tensors.weights,
            tensors.gradients,
            *(tensors.moments or ([],)),
            weight_decay=settings.weight_decay,
            momentum=settings.momentum,
            lr=numbers.rate,
            dampening=0.0,
            nesterov=False,
            maximize=False,
            is_first_step=False,
            grad_scale=numbers.divisor,
            found_inf=numbers.skip,
        )
