"""Devices that collect operations into graphs, and whose optimiser's step is called from the host."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trainer.config.schedules.form import Preset
from trainer.devices.clipping import clip_
from trainer.devices.device import Device


class SteppingDevice(Device):
    """A device whose optimiser's ``step`` is called, with the rate as a number of the host.

    It collects operations and runs them as one graph. clips_in_step: that optimiser clips gradients itself,
    once an update.
    """

    collectives = ("single", "torch_distributed")
    needs_rows = True
    own_step = True  # seeds between the parts of a model would make several graphs of one
    clips_in_step = False

    def optimiser(
        self, ours: torch.optim.Optimizer, preset: Preset, groups: list[dict[str, Any]]
    ) -> torch.optim.Optimizer:
        """Return the optimiser to step: ours, in plain operations, or one of the device's own.

        groups: each holds params, weight_decay and trust.
        """
        return ours

    def clip_(self, gradients: Sequence[Tensor], max_norm: float | Tensor) -> Tensor:
        """Clip the gradients in place to the global norm. Returns their norm before.

        max_norm: a 0-dim tensor where it follows a loss scale.
        """
        return clip_(gradients, max_norm)

    def after_step(self) -> None:
        """Called after each step of the optimiser. By default as after each backward pass."""
        self.after_backward()
