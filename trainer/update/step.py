"""The optimiser step that ends an update, with clipping, the optimiser, and the scale of the loss."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.update.optimiser import Optimiser, StepScalars, StepTensors

Groups = Sequence[tuple[StepTensors, Any]]
"""Tensors of parameter groups, or of chunks of groups, each with the settings of the group."""


class LossScale:
    """Factor of the loss that keeps small fp16 gradients from becoming 0.

    This base class is for fp32 and bf16, which need no factor. Its scale is always 1.
    """

    is_one = True
    value: Tensor | float = 1.0
    # Count of finite updates, read from an fp16 checkpoint. It is kept only to be written to the next
    # checkpoint.
    _good = 0.0

    def scale(self, loss: Tensor) -> Tensor:
        """Return the loss multiplied by the scale, ready for the backward pass."""
        return loss

    def state_dict(self) -> dict[str, float]:
        """Return the scale's state for a checkpoint. Waits for the device."""
        return {"value": 1.0, "good": int(self._good)}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Set the state from a checkpoint. The scale is limited to the bounds of this object."""
        self._good = state["good"]


class OptimiserStep:
    """Clipping and the optimiser as one function over tensors, for fp32. Every update changes the weights.

    The version for 16 bits, ``trainer.update.skipping.SkippingOptimiserStep``, can skip updates.
    optimiser: this trainer's optimiser, or an optimiser from the device's library.
    device_clip: the device's clipping function, or None for ``trainer.devices.clipping.clip_``.
    gradient_norm: norm of all gradients of the most recent update, before clipping and without the loss
        scale. It is a 0-dim tensor on the device, or None if it was not computed.
    applied: number of updates of the phase that changed the weights. It can be set. Reading it may
        wait for the device.
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
        """Change the weights by one step, with the gradients in the weights' ``grad``.

        The gradients are averaged over the workers, and still multiplied by the loss scale.
        gradients: the same gradients. They are used by versions whose device clips them
            (``trainer.update.device_step``).
        rate: learning rate.
        number: number of the update in its phase, from 1. Numbers are consecutive.
        """
        self._rate.fill_(rate)
        self._change(self.optimiser.tensors(self._chunk))

    def _change(self, groups: Groups) -> None:
        """Clip the gradients by the norm of all of them, then let the optimiser change the weights."""
        divisor = None
        if self._max_norm is not None:
            norm = self.optimiser.norms.compute_total(
                [one for tensors, _ in groups for one in tensors.gradients]
            )
            self._norm.copy_(norm)
            self.gradient_norm = self._norm
            # Dividing by max(1, norm / max_norm) clips without a branch. The optimiser divides while it reads
            # the gradients, which saves one pass over all gradients.
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
        """Return text about how many of the last ``updates`` updates were skipped, or "" if none were.

        Waits for the device. If the training has diverged, every worker raises NotFiniteError with the number
        of the update.
        """
        return ""
