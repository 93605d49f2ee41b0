"""Base class of devices that record operations, run them as a graph, and need an optimiser object."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trainer.config.schedules.form import Preset
from trainer.devices.clipping import clip_
from trainer.devices.device import Device


class SteppingDevice(Device):
    """A device that records operations and runs them together as a graph, instead of one after the other.

    For each update it calls the ``step`` method of an optimiser, with the learning rate as a Python number.
    clips_in_step: True if the optimiser itself clips the gradients, once per update.
    """

    collectives = ("single", "torch_distributed")
    needs_rows = True
    # This also means one dropout seed per micro-batch. A new seed for each layer would cut the graph into
    # several.
    ends_updates = True
    clips_in_step = False

    def optimiser(
        self, ours: torch.optim.Optimizer, preset: Preset, groups: list[dict[str, Any]]
    ) -> torch.optim.Optimizer:
        """Return the optimiser to use: ``ours``, or an optimiser from the device's library.

        ours: the trainer's optimiser, made of plain operations.
        groups: parameter groups with the keys params, weight_decay and trust.
        """
        return ours

    def clip_(self, gradients: Sequence[Tensor], max_norm: float | Tensor) -> Tensor:
        """Clip the gradients in place by their global norm. Return the norm before clipping.

        max_norm: the largest allowed norm. It is a 0-dim tensor if it depends on a loss scale.
        """
        return clip_(gradients, max_norm)

    def after_step(self) -> None:
        """Do what the device needs after each optimiser step.

        By default, this is the same as what it needs after each backward pass.
        """
        self.after_backward()
