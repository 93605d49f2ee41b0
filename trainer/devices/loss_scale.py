"""Loss scaling for 16-bit floats with a narrow range, within bounds, on the device.

torch's GradScaler is not used: it halves its scale without end when every gradient is infinite (LAMB then
changes nothing and no error is raised), and it checks gradients before they are averaged over workers.
"""

import torch
from torch import Tensor

_GROWTH_INTERVAL = 2000
"""Finite updates in a row after which the scale is doubled."""


class LossScale:
    """A factor for the loss: doubled after many finite updates in a row, halved after an overflow.

    Without bounds it stays 1. value: the scale, 0-dim on the device, so that no update waits for it.
    """

    def __init__(
        self,
        initial: float = 1.0,
        floor: float = 1.0,
        ceiling: float = 1.0,
        device: torch.device | str = "cpu",
    ) -> None:
        self.value = torch.full((), initial, device=device)
        self._good = torch.zeros((), device=device)
        self._floor, self._ceiling = floor, ceiling
        self.is_one = initial == floor == ceiling == 1

    def scale(self, loss: Tensor) -> Tensor:
        """The scaled loss, to be differentiated."""
        return loss if self.is_one else loss * self.value

    def times(self, number: float) -> float | Tensor:
        """The number times the scale; a float where the scale is always 1."""
        return number if self.is_one else number * self.value

    def update(self, overflow: Tensor) -> Tensor:
        """Adjust the scale; overflow: 0-dim bool, true if a gradient of this update was not finite.

        To be called once for each update, on every worker with the same value. Returns a 0-dim bool: the
        training has diverged, because a smaller scale would be below the lower bound.
        """
        diverged = overflow & (self.value <= self._floor)
        good = torch.where(overflow, 0.0, self._good + 1)
        grows = good >= _GROWTH_INTERVAL
        changed = torch.where(overflow, self.value / 2, torch.where(grows, self.value * 2, self.value))
        self.value.copy_(changed.clamp(self._floor, self._ceiling))
        self._good.copy_(torch.where(grows, 0.0, good))
        return diverged

    def state_dict(self) -> dict[str, float]:
        """The state for a checkpoint; waits for the device."""
        return {"value": float(self.value), "good": int(self._good)}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Continue from a checkpoint's state, within these bounds."""
        self.value.fill_(min(max(state["value"], self._floor), self._ceiling))
        self._good.fill_(state["good"])
