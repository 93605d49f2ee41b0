"""Evaluation of a model: its metrics on batches, between updates or without any."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trainer.data.batches import Batch
from trainer.update.strategy import Learner, Strategy, Worker, find_kind


class Measured(NamedTuple):
    """Of a batch Outcome.sums and, of a task that wants them, Outcome.outputs, on the device."""

    sums: Tensor
    outputs: Tensor | None


class Inference:
    """Metrics of the model on batches, without dropout and gradients.

    exchanges: the workers measure together, each as many batches as the others.
    """

    exchanges = False

    def __init__(self, worker: Worker, strategy: Any = None) -> None:
        """strategy: that of the training, whose compiled model is used, or None without a training."""
        self._worker = worker
        self._learner: Learner = strategy.learner if strategy else Learner(worker)
        if strategy is None:
            worker.device.compile(self._learner)

    @contextmanager
    def evaluating(self) -> Iterator[Callable[[Batch], Measured]]:
        """A function from a batch in host memory to its measures. On exit the model is in training mode."""
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


def find_inference(worker: Worker, strategy: Strategy | None = None) -> Inference:
    """The evaluation of the worker's model, on its device. strategy: that of its training, or None."""
    kind = find_kind(worker.device, worker.division)
    found: Inference = (kind.inference or Inference)(worker, strategy)
    return found
