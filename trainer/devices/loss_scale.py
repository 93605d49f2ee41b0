"""Scaling of losses for 16-bit floats with a narrow range, within bounds.

Not torch's GradScaler, which halves its scale for ever when every gradient is infinite (LAMB then stands
still in silence), and judges gradients before they are averaged over workers.
"""

import math

import torch

from trainer.errors import NotFiniteError

_PATIENCE = 2000
"""Good updates in a row after which the scale is doubled."""


class LossScale:
    """A factor for the loss: doubled after many good updates in a row, halved after a bad one.

    Without bounds given it is 1 for ever, and the first bad update is an error.
    """

    def __init__(self, initial: float = 1.0, floor: float = 1.0, ceiling: float = 1.0) -> None:
        self.value, self._good = initial, 0
        self._floor, self._ceiling = floor, ceiling

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss to differentiate."""
        return loss * self.value

    def unscale(self, gradients: list[torch.Tensor]) -> None:
        """Divide the gradients, in place, by the scale."""
        if self.value != 1:
            torch._foreach_mul_(gradients, 1 / self.value)

    def update(self, norm: float) -> bool:
        """Whether the update may be made: ``norm``, of the averaged gradients, is finite.

        To be asked once for each update, and by every worker of the same norm. NotFiniteError when a
        smaller scale would leave the bounds.
        """
        good = math.isfinite(norm)
        if not good and self.value <= self._floor:
            found = f"the gradients' norm is {norm} at loss scale {self.value:g}, the least allowed"
            remedy = "use bf16 or fp32, or a smaller learning rate"
            raise NotFiniteError(f"{found}; the training has diverged: {remedy}")
        self._good = self._good + 1 if good else 0
        if not good or self._good >= _PATIENCE:
            changed = self.value * 2 if good else self.value / 2
            self.value, self._good = min(max(changed, self._floor), self._ceiling), 0
        return good

    def state_dict(self) -> dict[str, float]:
        """What a checkpoint keeps."""
        return {"value": self.value, "good": self._good}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Go on as the checkpoint says, within these bounds."""
        self.value = min(max(state["value"], self._floor), self._ceiling)
        self._good = int(state["good"])
