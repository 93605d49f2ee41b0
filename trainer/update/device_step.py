"""The end of an update by a device's own optimiser, or by ours in plain operations, called step by step."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trainer.config.settings import Config
from trainer.config.updates import Preset
from trainer.devices.device import Device
from trainer.update.clipping import clip_
from trainer.update.optimiser import LossScale, WeightStep, build_optimiser


class SteppingDevice(Device):
    """A device whose optimiser's ``step`` is called, with the rate as a number of the host.

    It collects operations and runs them as one graph. clips_in_step: that optimiser clips gradients itself,
    once an update.
    """

    collectives = ("single", "torch_distributed")
    needs_rows = True
    own_step = True  # seeds between the parts of a model would make several graphs of one
    clips_in_step = False

    def optimiser(self, preset: Preset, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """The optimiser over groups that each hold params, weight_decay and trust."""
        made = build_optimiser(preset, groups)
        made.fuses = False
        return made

    def clip_(self, gradients: Sequence[Tensor], max_norm: float | Tensor) -> Tensor:
        """Clip the gradients in place to the global norm. Returns their norm before.

        max_norm: a 0-dim tensor where it follows a loss scale.
        """
        return clip_(gradients, max_norm)

    def after_step(self) -> None:
        """Called after each step of the optimiser. By default as after each backward pass."""
        self.after_backward()


class DeviceStep(WeightStep):
    """Clipping by the device, then the optimiser's ``step``. No update is skipped."""

    _made = 0

    def __init__(
        self, config: Config, device: SteppingDevice, preset: Preset, groups: list[dict[str, Any]]
    ) -> None:
        self.scale = LossScale()
        self.optimiser = device.optimiser(preset, groups)
        self._device, self.own_clip = device, device.clip_
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
            if "step" in group:  # our LAMB counts once a group, PyTorch's AdamW once a tensor
                group["step"] = count
            elif "betas" in group:
                for weight in group["params"]:
                    self.optimiser.state[weight]["step"] = torch.tensor(float(count))
