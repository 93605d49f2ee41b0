"""Evaluation of a model: its metrics on batches, between updates or without any."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from trainer.data.batches import Batch
from trainer.tasks.task import Outcome
from trainer.update.strategy import Learner
from trainer.update.worker import Worker


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
    def evaluating(self) -> Iterator[Callable[[Batch], Outcome]]:
        """A function from a batch in host memory to its outcome. On exit the model is in training mode."""
        self._worker.model.eval()
        with torch.no_grad():
            yield partial(self._worker.device.forward, self._learner)
        self._worker.model.train()

    def release(self) -> None:
        """Free the device for the next phase."""
