"""Evaluation of a model on batches, during a training or without a training."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from trainer.config.model import ModelConfig
from trainer.data.batches import Batch
from trainer.tasks.task import Outcome
from trainer.update.learner import Learner
from trainer.update.worker import Worker


class Inference:
    """Object that evaluates the model: it computes loss and metrics of batches, without
    dropout and gradients.

    exchanges: whether evaluating a batch needs an exchange between the workers. If so, all workers must
        evaluate the same number of batches.
    """

    exchanges = False

    def __init__(self, worker: Worker, strategy: Any = None) -> None:
        """Compile the model, unless a training has already compiled it.

        strategy: strategy of the training, or None if nothing is trained.
        """
        self._worker = worker
        self._learner: Learner = strategy.learner if strategy else Learner(worker)
        if strategy is None:
            worker.device.compile(self._learner)

    @property
    def shape(self) -> ModelConfig:
        """The settings of the model."""
        return self._worker.model.config

    @contextmanager
    def evaluating(self) -> Iterator[Callable[[Batch], Outcome]]:
        """Return a context that provides a function from a batch in host memory to its
        outcome (loss and metrics).

        When the context ends, the model is in training mode.
        """
        self._worker.model.eval()
        with torch.no_grad():
            yield partial(self._worker.device.forward, self._learner)
        self._worker.model.train()

    def release(self) -> None:
        """Free the memory on the device, for the next phase of the run."""
