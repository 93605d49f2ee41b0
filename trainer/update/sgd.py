"""Stochastic gradient descent with momentum, as PyTorch has it."""

import torch
from torch import Tensor

from trainer.update.optimiser import GroupSettings, Numbers, Optimiser, Tensors


class Sgd(Optimiser):
    """Per tensor w with gradient g, and an average b that starts at 0:

    b = momentum * b + g + weight_decay * w
    w = w - lr * b
    """

    @property
    def moments(self) -> tuple[str, ...]:
        return ("momentum_buffer",) if self.preset.momentum else ()

    @staticmethod
    def fused(tensors: Tensors, numbers: Numbers, settings: GroupSettings) -> None:
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
