"""Updates by one process whose gradients are added up in the order of a pipeline's stages and copies.

A readable twin: plain loops over micro-batches, with the model's own passes and the strategy's own end of an
update. Sums in this order have a pipeline's bits; those of ``Replicated`` differ by their rounding.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trainer.data.batches import Batch
from trainer.data.same_length import with_same_length
from trainer.strategies.dropout import seed_micro_batch
from trainer.strategies.pipelined import TIED
from trainer.strategies.replicated import Replicated
from trainer.strategies.strategy import UpdateNumber, Worker, loss_and_sums

HEADS = "the word embeddings' second use"


class OrderedSums:
    """A copy's gradients are added up over its micro-batches, then averaged over the copies.

    Those of the word embeddings' two uses, on the first and on the last stage, are added up at the end.
    """

    def __init__(self, worker: Worker, strategy: Replicated, copies: int) -> None:
        self._worker, self._strategy, self._copies = worker, strategy, copies
        self._weights: dict[str, Tensor] = dict(worker.model.named_parameters())
        second = torch.nn.Parameter(self._weights[TIED].detach())  # the same memory, another gradient
        heads = worker.model.cls.predictions  # type: ignore[attr-defined]
        heads.register_forward_pre_hook(lambda module, given: (given[0], second))
        self._used = {**self._weights, HEADS: second}

    def update(self, batches: Sequence[Batch], rate: float, at: UpdateNumber) -> Tensor:
        """Change the weights; returns the sums of Strategy.update."""
        batches = with_same_length(batches, self._worker.device.prepare)
        values, sums = [], []
        for copy in range(self._copies):
            own = range(copy, len(batches), self._copies)
            values.append(torch.stack([self._pass(batches[n], n, len(own), at) for n in own]).sum(0))
            sums.append({name: take(weight) for name, weight in self._used.items()})
        means = {name: sum(one[name] / len(sums) for one in sums) for name in self._used}
        means[TIED] += means.pop(HEADS)
        for name, weight in self._weights.items():
            weight.grad = means[name]
        step: Any = self._strategy._step
        step.take(list(means.values()), rate, at.step + 1)
        self._strategy.optimiser.zero_grad()
        return torch.stack(values).sum(0)

    def _pass(self, batch: Batch, number: int, count: int, at: UpdateNumber) -> Tensor:
        """Add the gradients of micro-batch ``number``, one of so many of a copy, to the weights' grad."""
        worker = self._worker
        seed_micro_batch(worker, at, number)
        outcome = worker.device.forward(lambda moved: worker.task.outcome(worker.model, moved), batch)
        self._strategy.scale.scale(outcome.loss / count).backward()  # type: ignore[no-untyped-call]
        return loss_and_sums(outcome)


def take(weight: Tensor) -> Tensor:
    """The gradient, which the weight no longer has."""
    found, weight.grad = weight.grad, None
    assert found is not None
    return found
