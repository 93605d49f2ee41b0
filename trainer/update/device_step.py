"""The optimiser step on devices that need an optimiser object, instead of a function over tensors."""

from typing import Any

import torch
from torch import Tensor

from trainer.config.schedules.form import Preset
from trainer.config.settings import Config
from trainer.devices.stepping_device import SteppingDevice
from trainer.update.optimisers import build_optimiser
from trainer.update.step import LossScale, OptimiserStep


class DeviceOptimiserStep(OptimiserStep):
    """Optimiser step in which the device clips the gradients, and the optimiser object changes the weights.

    No update is ever skipped.
    """

    _made = 0

    def __init__(
        self, config: Config, device: SteppingDevice, preset: Preset, groups: list[dict[str, Any]]
    ) -> None:
        """Choose the optimiser: this trainer's, in plain operations, or the one that the
        device's library provides.

        groups: parameter groups from ``group_parameters``.
        """
        self.scale = LossScale()
        ours = build_optimiser(preset, groups)
        ours.fuses = False
        self.optimiser = device.optimiser(ours, preset, groups)
        self._device, self.device_clip = device, device.clip_
        clips = config.update.clipping_point == "per_update" and not device.clips_in_step
        self._max_norm = config.update.max_grad_norm if clips else None

    def take(self, gradients: list[Tensor], rate: float, number: int) -> None:
        if self._max_norm is not None:
            self.gradient_norm = self._device.clip_(gradients, self._max_norm)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        self._made += 1
        self._device.after_step()

    @property
    def applied(self) -> int:
        return self._made

    @applied.setter
    def applied(self, count: int) -> None:
        self._made = count
        for group in self.optimiser.param_groups:
            # This trainer's optimisers count their steps per parameter group. PyTorch's AdamW counts them per
            # tensor.
            if "step" in group:
                group["step"] = count
            elif "betas" in group:
                for weight in group["params"]:
                    self.optimiser.state[weight]["step"] = torch.tensor(float(count))
