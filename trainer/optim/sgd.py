"""Stochastic gradient descent with momentum, as PyTorch has it."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bertdata.config.value_check import check_names
from trainer.optim.optimiser import CHUNK, Numbers, Optimiser, Tensors, divided, overwrite

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

    def __init__(self, params: Iterable[Any], *, chunk: int = CHUNK, **settings: Any) -> None:
        check_names(settings, _DEFAULTS, "sgd: ")
        super().__init__(params, {**_DEFAULTS, **settings}, chunk)

    def settings(self, group: dict[str, Any]) -> SgdSettings:
        return SgdSettings(group["momentum"], group["weight_decay"])

    def moments_of(self, settings: SgdSettings) -> tuple[str, ...]:
        return ("momentum_buffer",) if settings.momentum else ()

    @staticmethod
    def rule(tensors: Tensors, numbers: Numbers, settings: SgdSettings) -> None:
        """A step in plain operations, which a compiler joins."""
        b = divided(tensors.gradients, numbers.divisor)
        if settings.weight_decay:
            b = list(torch._foreach_add(b, tensors.weights, alpha=settings.weight_decay))
        if settings.momentum:
            (buffers,) = tensors.moments
            b = list(torch._foreach_add(torch._foreach_mul(buffers, settings.momentum), b))
            overwrite(buffers, b, numbers.skip)
        changed = torch._foreach_sub(tensors.weights, torch._foreach_mul(b, numbers.rate))
        overwrite(tensors.weights, changed, numbers.skip)

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
