"""Evaluation of a model on batches, during a training or without one."""

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
    """Evaluates the model: computes loss and metrics of batches, without dropout and gradients.

    exchanges: evaluating a batch needs an exchange between the workers, so all must evaluate equally many
    batches.
    """

    exchanges = False

    def __init__(self, worker: Worker, strategy: Any = None) -> None:
        """Compile the model, unless a training has compiled it.

        strategy: strategy of the training that is under way, or None.
        """
        self._worker = worker
        self._learner: Learner = strategy.learner if strategy else Learner(worker)
        if strategy is None:
            worker.device.compile(self._learner)

    @contextmanager
    def evaluating(self) -> Iterator[Callable[[Batch], Outcome]]:
        """Yield a function from a batch in host memory to its outcome.

        Afterwards the model is in training mode.
        """
        self._worker.model.eval()
        with torch.no_grad():
            yield partial(self._worker.device.forward, self._learner)
        self._worker.model.train()

    def release(self) -> None:
        """Free the device's memory for the next phase."""
