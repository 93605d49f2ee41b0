"""The interface of devices that make whole updates by compiled programs of their own."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from trainer.config.update import Preset
from trainer.data.batches import Batch
from trainer.devices.device import Device
from trainer.update.step import LossScale

LossAndSums = Callable[[Batch], tuple[Tensor, Tensor]]
"""From a batch to the loss, with gradients, and a vector of sums that are added up over batches."""


class Programs(Protocol):
    """The programs of a model on a device: one trains, one evaluates.

    The training program is compiled at the first update, when the model has the weights that the run starts
    from.
    """

    def update(
        self, updates: Sequence[Sequence[Batch]], optimiser: torch.optim.Optimizer, step: int, total: int
    ) -> list[Tensor]:
        """Make the updates. Returns for each the sums over its micro-batches.

        step: the first update's number in its phase, total: in the run, both from 0.
        """

    def compile(
        self, updates: Sequence[Sequence[Batch]], optimiser: torch.optim.Optimizer, total: int
    ) -> None:
        """Compile the training program for the shapes of these updates."""

    def fetch(self) -> None:
        """Copy the newest weights into the model's parameters."""

    def moments(self) -> dict[str, Tensor]:
        """The optimiser's tensors as KIND/NAME."""

    def load_moments(self, moments: dict[str, Tensor], applied: int) -> None:
        """Set the optimiser's tensors (KIND/NAME) and its count of updates."""

    def evaluating(self) -> AbstractContextManager[Callable[[Batch], Tensor]]:
        """A function from a batch to its sums, with the newest weights and without dropout."""

    def release(self) -> None:
        """Destroy the programs, so that those of the next phase get the device."""


class ProgramDevice(Device, ABC):
    """A device that makes whole updates by compiled programs of its own."""

    strategy = "whole_updates"

    @abstractmethod
    def check_training(self, workers: int) -> None:
        """SettingsError for settings that the device cannot train with, on so many workers."""

    @abstractmethod
    def check_accumulation(self, accumulation: int) -> None:
        """SettingsError where so few micro-batches of an update cannot be trained with."""

    @abstractmethod
    def programs(self, model: nn.Module, loss_and_sums: LossAndSums, width: int) -> Programs:
        """The programs of a model. width: the number of sums."""

    @abstractmethod
    def optimiser(self, preset: Preset, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """The device's optimiser over groups that each hold params, weight_decay and trust."""

    @abstractmethod
    def loss_scale(self) -> LossScale:
        """The loss scale of a checkpoint."""
