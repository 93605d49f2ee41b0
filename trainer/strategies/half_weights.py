"""Weights in 16 bits that are made once an update, where autocast would make them in each micro-batch."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.func import functional_call

from trainer.data.batches import Batch
from trainer.devices.device import HALVES
from trainer.strategies.strategy import Learner, Worker
from trainer.tasks.task import Outcome


def half_copies(worker: Worker) -> dict[str, Tensor]:
    """The learner's linear layers' weights in the type of the products; {} where autocast makes copies.

    The gradient of a copy goes on to its weight in each backward pass.
    """
    half = HALVES.get(worker.config.update.precision)
    if half is None or not worker.device.casts_once:
        return {}
    return {
        f"model.{path}.{name}": weight.to(half)
        for path, module in worker.model.named_modules()
        if isinstance(module, nn.Linear)
        for name, weight in module.named_parameters(recurse=False)
    }


def with_weights(learner: Learner, weights: dict[str, Tensor]) -> Callable[[Batch], Outcome]:
    """The learner with these weights, by name, in place of its own."""
    return (lambda batch: functional_call(learner, weights, (batch,))) if weights else learner
