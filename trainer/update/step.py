"""The end of an update: clipping, the optimiser, and the scale of the loss."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.update.optimiser import Numbers, Optimiser, Tensors

Groups = Sequence[tuple[Tensors, Any]]
"""The tensors of parameter groups, or of parts of them, each with the group's settings."""


class LossScale:
    """The factor of the loss that keeps small fp16 gradients from underflow: always 1 in fp32 and bf16."""

    is_one = True
    value: Tensor | float = 1.0
    _good = 0.0  # of a checkpoint in fp16, and kept for the next one

    def scale(self, loss: Tensor) -> Tensor:
        """The scaled loss, to be differentiated."""
        return loss

    def state_dict(self) -> dict[str, float]:
        """The state for a checkpoint. Waits for the device."""
        return {"value": 1.0, "good": int(self._good)}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Continue from a checkpoint's state, within the bounds of this scale."""
        self._good = state["good"]


class WeightStep:
    """Clipping and the optimiser as one function over tensors. In fp32 no update is skipped.

    optimiser: ours, or one of the device's own step. applied: the updates of the phase that changed the
    weights, which can be set; may wait for the device.
    own_clip: the device's function in the place of ``trainer.devices.clipping.clip_``, if it has one.
    gradient_norm: the global norm of the last update's gradients before clipping, 0-dim on the device; None
    where the step computes none.
    """

    optimiser: Any
    own_clip: Callable[[Sequence[Tensor], float | Tensor], Tensor] | None = None
    gradient_norm: Tensor | None = None

    def __init__(self, config: Config, device: Device, optimiser: Optimiser) -> None:
        self.optimiser: Any = optimiser
        self.scale = LossScale()
        self._to_host = device.to_host
        self._chunk = optimiser.chunk if optimiser.fuses else None
        self._rule = optimiser.fused if optimiser.fuses else optimiser.rule
        clips = config.update.clipping_point == "per_update"
        self._max_norm = config.update.max_grad_norm if clips else None
        zeros = (torch.zeros((), device=device.torch_device) for _ in range(3))
        self._applied, self._norm, self._rate = zeros

    @torch.no_grad()
    def take(self, gradients: list[Tensor], rate: float, number: int) -> None:
        """Change the weights by the averaged gradients, still multiplied by the loss scale.

        number: the update's in its phase, from 1; one more than that of the update before.
        """
        self._rate.fill_(rate)
        self._change(self.optimiser.tensors(self._chunk))

    def _change(self, groups: Groups) -> None:
        divisor = None
        if self._max_norm is not None:
            norm = self.optimiser.norms.all([one for tensors, _ in groups for one in tensors.gradients])
            self._norm.copy_(norm)
            self.gradient_norm = self._norm
            divisor = (norm / self._max_norm).clamp(min=1.0)
        self._applied.add_(1)
        numbers = Numbers(self._rate, self._applied.clamp(min=1.0), divisor)
        for tensors, settings in groups:
            self._rule(tensors, numbers, settings)

    @property
    def applied(self) -> int:
        return int(self._to_host(self._applied))

    @applied.setter
    def applied(self, count: int) -> None:
        self._applied.fill_(count)

    def tell_skipped(self, updates: int) -> str:
        """The number of the last updates that were skipped for a gradient, in words: "" for none.

        Waits for the device. NotFiniteError names the update at which the training diverged, on every worker.
        """
        return ""
