"""Single-process training updates that add gradients up in the same order as a model split over processes.

Floating-point sums depend on their order. So an update by ``Strategy`` differs from a split model's update by
rounding, and an update by these classes is equal bit for bit. They are plain loops over micro-batches, and
use the model's forward and backward pass and the strategy's optimiser step.
"""

from collections.abc import Sequence
from math import ceil
from typing import Any

import torch
from torch import Tensor

from trainer.data.batches import Batch
from trainer.devices.clipping import compute_norms
from trainer.splitting.held import WORD_EMBEDDINGS
from trainer.splitting.stage import pad_to_same_length
from trainer.update.optimiser import Norms
from trainer.update.strategy import Strategy, UpdateNumber, join_loss_and_sums, seed_micro_batch
from trainer.update.worker import Worker

HEADS = "the word embeddings' second use"


class OrderedSums:
    """The base class, with a micro-batch's passes and the end of an update."""

    def __init__(self, worker: Worker, strategy: Strategy, copies: int) -> None:
        self._worker, self._strategy, self._copies = worker, strategy, copies
        self._weights: dict[str, Tensor] = dict(worker.model.named_parameters())

    def _pass(self, batch: Batch, number: int, count: int, at: UpdateNumber) -> Tensor:
        """Add the gradients of a micro-batch to the weights' ``grad``.

        number: number of the micro-batch.
        count: number of micro-batches of a copy, by which the loss is divided.
        """
        worker = self._worker
        seed_micro_batch(worker, at, number)
        outcome = worker.device.forward(lambda moved: worker.task.outcome(worker.model, moved), batch)
        self._strategy.optimiser_step.scale.scale(outcome.loss / count).backward()  # type: ignore[no-untyped-call]
        return join_loss_and_sums(outcome)

    def _step(self, gradients: dict[str, Tensor], rate: float, at: UpdateNumber) -> None:
        """Change the weights by the optimiser."""
        for name, weight in self._weights.items():
            weight.grad = gradients[name]
        self._strategy.optimiser_step.take(list(gradients.values()), rate, at.update + 1)
        self._strategy.optimiser_step.optimiser.zero_grad()


class PipelinedSums(OrderedSums):
    """Updates in a pipeline's order: sums over each copy's micro-batches, then an average of copies.

    The word embeddings are used on the first and on the last stage. Their gradients from these two uses are
    summed separately, and added up at the end.
    """

    def __init__(self, worker: Worker, strategy: Strategy, copies: int) -> None:
        super().__init__(worker, strategy, copies)
        second = torch.nn.Parameter(
            self._weights[WORD_EMBEDDINGS].detach()
        )  # the same memory, another gradient
        heads = worker.model.cls.predictions  # type: ignore[attr-defined]
        heads.register_forward_pre_hook(lambda module, given: (given[0], second))
        self._used = {**self._weights, HEADS: second}

    def update(self, batches: Sequence[Batch], rate: float, at: UpdateNumber) -> Tensor:
        """Change the weights. Returns the same sums as Strategy.update."""
        batches = pad_to_same_length(batches, self._worker.device.prepare)
        values, sums = [], []
        for copy in range(self._copies):
            own = range(copy, len(batches), self._copies)
            values.append(torch.stack([self._pass(batches[n], n, len(own), at) for n in own]).sum(0))
            sums.append(take(self._used))
        means = {name: sum(one[name] / len(sums) for one in sums) for name in self._used}
        means[WORD_EMBEDDINGS] += means.pop(HEADS)
        self._step(means, rate, at)
        return torch.stack(values).sum(0)


class ShardedSums(OrderedSums):
    """Updates in the order of sharded copies: the average over the copies of each micro-batch, then the sum.

    The norms are computed by PartNorms. To have the order of sums of a layer with gathered weights, attention
    computes its three products separately, and each input of a layer is a separate tensor.
    """

    def __init__(self, worker: Worker, strategy: Strategy, copies: int) -> None:
        super().__init__(worker, strategy, copies)
        for layer in worker.model.bert.encoder.layer:
            layer.attention.self.joins = False  # type: ignore[union-attr]
            layer.register_forward_pre_hook(lambda module, given: tuple(map(own_view, given)))
        strategy.optimiser_step.optimiser.norms = PartNorms(copies)  # type: ignore[attr-defined]

    def update(self, batches: Sequence[Batch], rate: float, at: UpdateNumber) -> list[Tensor]:
        """Change the weights. Returns the sums of Strategy.update for each copy."""
        turns = len(batches) // self._copies
        values, sums = [], dict.fromkeys(self._weights, torch.zeros(()))
        for turn in range(turns):
            found = []
            for number in range(turn * self._copies, (turn + 1) * self._copies):
                values.append(self._pass(batches[number], number, turns, at))
                found.append(take(self._weights))
            for name in sums:
                sums[name] = sums[name] + sum(one[name] for one in found) / self._copies
        self._step(sums, rate, at)
        return [torch.stack(values[copy :: self._copies]).sum(0) for copy in range(self._copies)]


class PartNorms(Norms):
    """Norms of tensors divided by rows among processes. The parts' squared norms are added up."""

    def __init__(self, count: int) -> None:
        self._count = count

    def compute_each(self, tensors: Sequence[Tensor]) -> Tensor:
        return self._joined([compute_norms(part) for part in self._parts(tensors)])

    def compute_total(self, tensors: Sequence[Tensor]) -> Tensor:
        return self._joined([torch.linalg.vector_norm(compute_norms(part)) for part in self._parts(tensors)])

    def _parts(self, tensors: Sequence[Tensor]) -> list[list[Tensor]]:
        """Return, for each process, its rows of every tensor."""
        most = [ceil(len(tensor) / self._count) for tensor in tensors]
        return [
            [tensor[n * rows : (n + 1) * rows] for tensor, rows in zip(tensors, most, strict=True)]
            for n in range(self._count)
        ]

    def _joined(self, parts: Sequence[Tensor]) -> Tensor:
        return torch.stack([part.square() for part in parts]).sum(0).sqrt()


def own_view(given: Any) -> Any:
    """Return a view of the tensor, so that the gradients of this use are summed separately."""
    return given.view_as(given) if isinstance(given, Tensor) else given


def take(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights' gradients and set ``grad`` to None."""
    found = {}
    for name, weight in weights.items():
        assert weight.grad is not None
        found[name], weight.grad = weight.grad, None
    return found
