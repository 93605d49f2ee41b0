"""Base class of devices that collect operations into graphs and have an optimiser object."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trainer.config.schedules.form import Preset
from trainer.devices.clipping import clip_
from trainer.devices.device import Device


class SteppingDevice(Device):
    """A device that calls an optimiser's ``step`` for each update, with the learning rate as a Python number.

    The device collects operations and runs them as one graph, instead of one after the other.
    clips_in_step: the optimiser clips gradients itself, once per update.
    """

    collectives = ("single", "torch_distributed")
    needs_rows = True
    # also means one dropout seed per micro-batch: seeds between the model's parts would cut a graph into
    # several
    ends_updates = True
    clips_in_step = False

    def optimiser(
        self, ours: torch.optim.Optimizer, preset: Preset, groups: list[dict[str, Any]]
    ) -> torch.optim.Optimizer:
        """Return the optimiser to use: ``ours`` (plain operations), or one from the device's library.

        groups: parameter groups with params, weight_decay and trust.
        """
        return ours

    def clip_(self, gradients: Sequence[Tensor], max_norm: float | Tensor) -> Tensor:
        """Clip the gradients in place to the global norm. Return the norm that they had.

        max_norm: the largest allowed norm. It is a 0-dim tensor if it depends on a loss scale.
        """
        return clip_(gradients, max_norm)

    def after_step(self) -> None:
        """Do what the device needs after each optimiser step.

        By default, this is the same as what it needs after each backward pass.
        """
        self.after_backward()
