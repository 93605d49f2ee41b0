"""Scaling of losses for 16-bit floats with a narrow range, within bounds.

Not torch's GradScaler, which halves its scale for ever when every gradient is infinite (LAMB then stands
still in silence), and judges gradients before they are averaged over workers.
"""

import math

import torch

from trainer.errors import NotFiniteError


class LossScale:
    """A factor for the loss: doubled after ``patience`` good updates in a row, halved after a bad one.

    Without bounds given it is 1 for ever, and the first bad update is an error.
    """

    def __init__(self, initial: float = 1.0, floor: float = 1.0, ceiling: float = 1.0, patience: int = 2000):
        self.value = initial
        self._floor = floor
        self._ceiling = ceiling
        self._patience = patience
        self._good = 0

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss to differentiate."""
        return loss if self.value == 1 else loss * self.value

    def unscale(self, gradients: list[torch.Tensor]) -> None:
        """Divide the gradients, in place, by the scale."""
        if self.value != 1:
            torch._foreach_mul_(gradients, 1 / self.value)

    def update(self, norm: float) -> bool:
        """Whether the update may be made: ``norm``, of the averaged gradients, is finite.

        To be asked once for each update, and by every worker of the same norm. NotFiniteError when a
        smaller scale would leave the bounds.
        """
        if math.isfinite(norm):
            self._good += 1
            if self._good >= self._patience:
                self.value, self._good = min(self.value * 2, self._ceiling), 0
            return True
        if self.value <= self._floor:
            raise NotFiniteError(
                f"the gradients' norm is {norm} at loss scale {self.value:g}, the least allowed; "
                f"the training has diverged: use bf16 or fp32, or a smaller learning rate"
            )
        self.value, self._good = max(self.value / 2, self._floor), 0
        return False

    def state_dict(self) -> dict[str, float]:
        """What a checkpoint keeps."""
        return {"value": self.value, "good": self._good}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Go on as the checkpoint says, within these bounds."""
        self.value = min(max(float(state["value"]), self._floor), self._ceiling)
        self._good = int(state["good"])
