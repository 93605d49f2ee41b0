"""A loss scale that follows the gradients, for 16-bit floats with a narrow range.

torch's GradScaler is not used: it halves its scale without end when every gradient is infinite (LAMB then
changes nothing and no error is raised), and it checks gradients before they are averaged over workers.
"""

import torch
from torch import Tensor

from trainer.config.settings import Config
from trainer.update.step import LossScale

_GROWTH_INTERVAL = 2000
"""Finite updates in a row after which the scale is doubled."""


class AdaptiveScale(LossScale):
    """A factor for the loss: doubled after many finite updates in a row, halved after an overflow.

    Without bounds it stays 1. value: the scale, 0-dim on the device, so that no update waits for it.
    """

    value: Tensor

    def __init__(
        self,
        initial: float = 1.0,
        floor: float = 1.0,
        ceiling: float = 1.0,
        device: torch.device | None = None,
    ) -> None:
        self.value = torch.full((), initial, device=device)
        self._finite = torch.zeros((), device=device)
        self._floor, self._ceiling = floor, ceiling
        self.is_one = initial == floor == ceiling == 1

    def scale(self, loss: Tensor) -> Tensor:
        return loss if self.is_one else loss * self.value

    def update(self, overflow: Tensor) -> Tensor:
        """Adjust the scale. overflow: 0-dim bool, true if a gradient of this update was not finite.

        To be called once for each update, on every worker with the same value. Returns a 0-dim bool: the
        training has diverged, because a smaller scale would be below the lower bound.
        """
        diverged = overflow & (self.value <= self._floor)
        good = torch.where(overflow, 0.0, self._finite + 1)
        grows = good >= _GROWTH_INTERVAL
        changed = torch.where(overflow, self.value / 2, torch.where(grows, self.value * 2, self.value))
        self.value.copy_(changed.clamp(self._floor, self._ceiling))
        self._finite.copy_(torch.where(grows, 0.0, good))
        return diverged

    def state_dict(self) -> dict[str, float]:
        return {"value": float(self.value), "good": int(self._finite)}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.value.fill_(min(max(state["value"], self._floor), self._ceiling))
        self._finite.fill_(state["good"])


def make_scale(config: Config, device: torch.device) -> AdaptiveScale:
    """The loss scale of the configured bounds, which are for fp16. In bf16 it is always 1."""
    if config.update.precision != "fp16":
        return AdaptiveScale()
    keys = config.scaling
    fixed = float(keys.loss_scaling)  # JSON may have whole numbers
    bounds = (float(keys.init_loss_scale), float(keys.min_loss_scale), float(keys.max_loss_scale))
    return AdaptiveScale(*((fixed, fixed, fixed) if fixed else bounds), device)
