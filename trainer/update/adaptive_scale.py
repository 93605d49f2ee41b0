"""A loss scale for fp16 that adapts to the gradients.

The loss is multiplied by the scale before the backward pass, so that small gradients do not become 0 in fp16.
The gradients are divided by the scale before they change the weights. PyTorch's GradScaler is not used, for
two reasons. If every gradient is infinite, it halves its scale without end. LAMB then changes nothing, and no
error is raised. And it checks gradients before they are averaged over the workers.
"""

import torch
from torch import Tensor

from trainer.config.settings import Config
from trainer.update.step import LossScale

_GROWTH_INTERVAL = 2000
"""Number of updates in a row with finite gradients after which the scale is doubled.

PyTorch's GradScaler uses it too.
"""


class AdaptiveScale(LossScale):
    """Loss scale that is doubled after many finite updates in a row, and halved after an
    overflow of the gradients.

    By default both bounds are 1, so the scale stays 1. A fixed scale from the configuration also has equal
    bounds, so the first overflow ends the run.
    value: the scale, as a 0-dim tensor on the device, so that the host never waits to read it.
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
        """Adjust the scale after an update.

        Return a 0-dim bool tensor that is True if the training has diverged.

        The training has diverged if a gradient overflows at the smallest allowed scale. Call this once per
        update, with the same value on every worker.
        overflow: 0-dim bool tensor, True if a gradient of this update is not finite.
        """
        # Use tensor operations instead of ``if``, because reading a value would make the host wait for the
        # device.
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
    """Return the configured loss scale for fp16, or a constant scale of 1 for bf16."""
    if config.update.precision != "fp16":
        return AdaptiveScale()
    keys = config.scaling
    fixed = float(keys.loss_scaling)  # a value from JSON may be an int
    bounds = (float(keys.init_loss_scale), float(keys.min_loss_scale), float(keys.max_loss_scale))
    return AdaptiveScale(*((fixed, fixed, fixed) if fixed else bounds), device)
