"""Loss scaling for 16-bit floats with a narrow range, within bounds.

torch's GradScaler is not used: it halves its scale without end when every gradient is infinite (LAMB then
changes nothing and no error is raised), and it checks gradients before they are averaged over workers.
"""

import math

import torch

from trainer.errors import NotFiniteError

_GROWTH_INTERVAL = 2000
"""Finite updates in a row after which the scale is doubled."""


class LossScale:
    """A factor for the loss: doubled after many finite updates in a row, halved after an overflow.

    Without bounds it stays 1, and the first overflow is an error.
    """

    def __init__(self, initial: float = 1.0, floor: float = 1.0, ceiling: float = 1.0) -> None:
        self.value = initial
        self._good = 0
        self._floor, self._ceiling = floor, ceiling

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """The scaled loss, to be differentiated."""
        return loss * self.value

    def unscale(self, gradients: list[torch.Tensor]) -> None:
        """Divide the gradients, in place, by the scale."""
        if self.value != 1:
            torch._foreach_mul_(gradients, 1 / self.value)

    def update(self, norm: float) -> bool:
        """Adjust the scale to the norm of the averaged gradients; returns whether to apply the update.

        To be called once for each update, on every worker with the same norm. NotFiniteError when a
        smaller scale would be below the lower bound.
        """
        good = math.isfinite(norm)
        if not good and self.value <= self._floor:
            found = f"the gradients' norm is {norm} at loss scale {self.value:g}, the least allowed"
            remedy = "use bf16 or fp32, or a smaller learning rate"
            raise NotFiniteError(f"{found}; the training has diverged: {remedy}")
        self._good = self._good + 1 if good else 0
        if not good or self._good >= _GROWTH_INTERVAL:
            changed = self.value * 2 if good else self.value / 2
            self.value = min(max(changed, self._floor), self._ceiling)
            self._good = 0
        return good

    def state_dict(self) -> dict[str, float]:
        """The state for a checkpoint."""
        return {"value": self.value, "good": self._good}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Continue from a checkpoint's state, within these bounds."""
        self.value = min(max(state["value"], self._floor), self._ceiling)
        self._good = int(state["good"])
