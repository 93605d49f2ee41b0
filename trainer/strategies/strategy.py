"""The seam between the training loop and the devices: a strategy makes updates over all of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from trainer.collectives.collective import Collective
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.devices.device import Device
from trainer.devices.loss_scale import LossScale
from trainer.model.bert import HeadedBert
from trainer.model.task import Outcome, Task
from trainer.strategies.division import Division


class UpdateNumber(NamedTuple):
    """The place of an update in the run, counted from 0: phase, update of the phase, update of all phases."""

    phase: int
    step: int
    total: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Worker:
    """Everything that an update is made with on one worker; the model is on the device."""

    config: Config
    device: Device
    workers: Collective
    division: Division
    task: Task
    model: HeadedBert


class Measured(NamedTuple):
    """Of a batch Outcome.sums and, of a task that wants them, Outcome.outputs, on the device."""

    sums: Tensor
    outputs: Tensor | None


class Learner(nn.Module):
    """The model with its loss, so that forward pass and loss are compiled as one."""

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self.model = worker.model
        self._task = worker.task

    def forward(self, batch: Batch) -> Outcome:
        return self._task.outcome(self.model, batch)


class Inference:
    """Metrics of the model on batches, without dropout and gradients.

    exchanges: the workers measure together, each as many batches as the others.
    """

    exchanges = False

    def __init__(self, worker: Worker, learner: Learner | None = None) -> None:
        """learner: that of the training, or None for a new one."""
        self._worker = worker
        if learner is None:
            learner = Learner(worker)
            worker.device.compile(learner)
        self._learner = learner

    @contextmanager
    def evaluating(self) -> Iterator[Callable[[Batch], Measured]]:
        """A function from a batch in host memory to its measures; on exit the model is in training mode."""
        model, device = self._worker.model, self._worker.device

        def measure(batch: Batch) -> Measured:
            outcome = device.forward(self._learner, batch)
            return Measured(outcome.sums, outcome.outputs)

        model.eval()
        with torch.no_grad():
            yield measure
        model.train()

    def release(self) -> None:
        """Free the device for the next phase."""


class Strategy(ABC):
    """Updates of the model's weights on one worker; weights and moments have the same bits on all."""

    scale: LossScale
    inference: Inference

    @property
    @abstractmethod
    def applied(self) -> int:
        """Updates of the phase that changed the weights; may wait for the device."""

    @abstractmethod
    def update(
        self, updates: Sequence[Sequence[Batch]], learning_rate: float, first: UpdateNumber
    ) -> list[Tensor]:
        """Change the weights once for each update, which is a sequence of micro-batches.

        Returns for each update the sums and weights of the loss and of the task's metrics on this worker
        (as ``loss_and_sums`` gives them, added up), still on the device. StopRequested leaves the weights as
        they are, without gradients.
        """

    @abstractmethod
    def compile(self, updates: Sequence[Sequence[Batch]], first: UpdateNumber) -> None:
        """Compile for the shapes of these updates; the weights must not be used afterwards."""

    def read_skipped(self) -> int:
        """Updates skipped since the start, because a gradient was not finite; waits for the device.

        NotFiniteError names the update at which the training diverged, on every worker.
        """
        return 0

    @property
    def gradient_norm(self) -> Tensor | None:
        """The norm of the last update's gradients before clipping, on the device; None if not computed."""
        return None

    def fetch(self) -> None:  # noqa: B027 - most devices have the newest weights there
        """Copy the newest weights into the model's parameters, where the device keeps them elsewhere."""

    @abstractmethod
    def moments(self) -> dict[str, Tensor]:
        """The optimiser's tensors as KIND/NAME, without its counts of updates."""

    @abstractmethod
    def load_moments(self, moments: dict[str, Tensor], applied: int) -> None:
        """Set the optimiser's tensors (KIND/NAME) and its count of updates."""

    def evaluating(self) -> AbstractContextManager[Callable[[Batch], Measured]]:
        """The function that ``Inference.evaluating`` gives, with the newest weights."""
        return self.inference.evaluating()

    def release(self) -> None:
        """Free the device for the next phase; no update may follow."""
        self.inference.release()


def loss_and_sums(outcome: Outcome) -> Tensor:
    """The loss as a sum of weight 1, then the sums of the task's metrics."""
    loss = outcome.loss.detach().float()
    return torch.cat([torch.stack([loss, torch.ones_like(loss)]), outcome.sums.float()])


def named_totals(task: Task, values: Sequence[float]) -> Mapping[str, tuple[float, float]]:
    """(sum, weight) of "loss" and of each metric of the task, from the values of ``loss_and_sums``."""
    pairs = zip(values[::2], values[1::2], strict=True)
    return dict(zip(("loss", *task.metrics), pairs, strict=True))
