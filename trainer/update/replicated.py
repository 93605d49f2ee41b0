"""Updates of a whole model by several workers, in 16 bits, or of micro-batches that are clipped apart."""

from collections.abc import Sequence
from contextlib import nullcontext

from torch import Tensor

from trainer.data.batches import Batch
from trainer.devices.device import HALVES
from trainer.tasks.task import Outcome
from trainer.update.averaging import WorkerAverages
from trainer.update.half_weights import HalfWeights
from trainer.update.micro_batch_sums import MicroBatchSums
from trainer.update.strategy import Strategy, UpdateNumber, Worker


class Replicated(Strategy):
    """Updates of a model that each worker holds as a whole. The workers average its gradients."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(worker)
        model, device, keys = worker.model, worker.device, worker.config.update
        self._weights: list[Tensor] = [weight for weight in model.parameters() if weight.requires_grad]
        leaves = self._weights
        self._half_weights: HalfWeights | None = None
        self._averages: WorkerAverages | None = None
        self._sums: MicroBatchSums | None = None
        # A layer that is computed again in the backward pass would find the weights themselves.
        if keys.precision != "fp32" and device.casts_once and not model.bert.recomputes:
            self._half_weights = HalfWeights(self.learner, HALVES[keys.precision])
            leaves = self._half_weights.leaves(self._weights)
        if worker.workers.size > 1:
            self._averages = WorkerAverages(worker, self._weights, leaves)
        self.exchanges_each = not worker.config.workers.allreduce_post_accumulation
        self._sums_apart = self.exchanges_each or keys.clips_micro_batches

    def _accumulate(self, batches: Sequence[Batch], at: UpdateNumber) -> Tensor:
        if self._half_weights:
            self._half_weights.refresh()
        if self._sums_apart:
            self._sums = MicroBatchSums(self.worker, self._weights, self.step)
        if self._averages:
            self._averages.begin()
        values = super()._accumulate(batches, at)
        if self._sums:
            self._sums.finish()
        if self._averages:
            self._averages.finish(self._gradients())
        return values

    def _forward(self, batch: Batch) -> Outcome:
        return self.worker.device.forward(self._half_weights or self.learner, batch)

    def _backward(self, loss: Tensor, divisor: float, is_last: bool) -> None:
        with self._averages.last_backward() if self._averages and is_last else nullcontext():
            super()._backward(loss, divisor, is_last)
        if self._sums:
            self._sums.add(divisor)
