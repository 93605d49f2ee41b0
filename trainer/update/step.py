"""The optimiser step that ends an update: clipping, the optimiser, and the scale of the loss."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.update.optimiser import Optimiser, StepScalars, StepTensors

Groups = Sequence[tuple[StepTensors, Any]]
"""Tensors of the parameter groups, or of chunks of them, each with its group's settings."""


class LossScale:
    """Factor of the loss that keeps small fp16 gradients from becoming 0.

    This base class is for fp32 and bf16, which need no factor: it is always 1.
    """

    is_one = True
    value: Tensor | float = 1.0
    # count of good updates from an fp16 checkpoint, kept only so that the next checkpoint has it again
    _good = 0.0

    def scale(self, loss: Tensor) -> Tensor:
        """Return the loss multiplied by the scale, ready for the backward pass."""
        return loss

    def state_dict(self) -> dict[str, float]:
        """Return the state for a checkpoint. Waits for the device."""
        return {"value": 1.0, "good": int(self._good)}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Take over the state of a checkpoint's loss scale, limited to the bounds of this scale."""
        self._good = state["good"]


class OptimiserStep:
    """Clipping and the optimiser as one function over tensors, for fp32: every update changes the weights.

    ``trainer.update.skipping.SkippingOptimiserStep`` is the version for 16 bits, which skips updates.

    optimiser: this trainer's optimiser, or one from the device's library.
    device_clip: the device's clipping function, or None for ``trainer.devices.clipping.clip_``.
    gradient_norm: global norm of the newest update's gradients before clipping, already divided by the loss
    scale, 0-dim on the device. None if it was not computed.
    applied: number of the phase's updates that changed the weights. Can be set. Reading may wait for the
    device.
    """

    optimiser: Any
    device_clip: Callable[[Sequence[Tensor], float | Tensor], Tensor] | None = None
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
        """Change the weights by the averaged gradients, which are still multiplied by the loss scale.

        The gradients are read from the weights' ``grad``. The argument holds the same tensors, for versions
        whose device clips them (``trainer.update.device_step``).

        rate: learning rate. number: the update's number in its phase, from 1. Numbers are consecutive.
        """
        self._rate.fill_(rate)
        self._change(self.optimiser.tensors(self._chunk))

    def _change(self, groups: Groups) -> None:
        """Clip by the global norm of all gradients, then let the optimiser change the weights."""
        divisor = None
        if self._max_norm is not None:
            norm = self.optimiser.norms.all([one for tensors, _ in groups for one in tensors.gradients])
            self._norm.copy_(norm)
            self.gradient_norm = self._norm
            # Dividing by max(1, norm / max_norm) clips without a branch. The optimiser divides while it reads
            # the gradients, which saves a pass over all of them.
            divisor = (norm / self._max_norm).clamp(min=1.0)
        self._applied.add_(1)
        numbers = StepScalars(self._rate, self._applied.clamp(min=1.0), divisor)
        for tensors, settings in groups:
            self._rule(tensors, numbers, settings)

    @property
    def applied(self) -> int:
        return int(self._to_host(self._applied))

    @applied.setter
    def applied(self, count: int) -> None:
        self._applied.fill_(count)

    def describe_skipped(self, updates: int) -> str:
        """Say how many of the last ``updates`` updates were skipped because of a gradient, "" for none.

        Waits for the device. Raises NotFiniteError, on every worker, with the update in which the training
        diverged.
        """
        return ""
