"""The interface of devices that make whole updates by compiled programs of their own."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import torch
from torch import Tensor

from trainer.data.batches import Batch

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
        """Make the updates; returns for each the sums over its micro-batches.

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
