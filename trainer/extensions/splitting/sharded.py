"""Sharded training: each worker holds a part of every weight, and gathers a layer where it computes it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from trainer.data.batches import Batch
from trainer.extensions.splitting.pieces import build_piece
from trainer.extensions.splitting.split_strategy import SplitInference, SplitStrategy
from trainer.update.strategy import (
    Learner,
    UpdateNumber,
    Worker,
    loss_and_sums,
    loss_divisor,
    seed_micro_batch,
)


class Sharded(SplitStrategy):
    """Updates by PyTorch's autograd on a model divided by FSDP2.

    Each micro-batch's gradients are averaged over the workers while its backward pass runs, and added up in
    the rows: no worker ever has the gradients of the whole model.
    """

    inference = SplitInference
    build = staticmethod(build_piece)

    def __init__(self, worker: Worker) -> None:
        super().__init__(worker)
        self.learner = Learner(worker)

    def update(
        self, updates: Sequence[Sequence[Batch]], learning_rate: float, first: UpdateNumber
    ) -> list[Tensor]:
        (batches,) = updates
        try:
            with self.worker.workers.naming_lost_workers():
                values = self._accumulate(batches, first)
                self.step.take(self.held.take_gradients(), learning_rate, first.step + 1)
        finally:
            self.held.drop_gradients()
        return [values]

    def _accumulate(self, batches: Sequence[Batch], at: UpdateNumber) -> Tensor:
        """Leave the mean of the micro-batches' gradients, times the loss scale, in the weights' grad.

        With reduction_type sum their sum.
        """
        values = list[Tensor]()
        workers, device = self.worker.workers, self.worker.device
        divisor = loss_divisor(self.worker.config, len(batches), workers.size)
        for number, batch in enumerate(batches):
            workers.stopping.check(exchanges=True)
            seed_micro_batch(self.worker, at, number)
            outcome = device.forward(self.learner, batch)
            self.step.scale.scale(outcome.loss / divisor).backward()  # type: ignore[no-untyped-call]
            device.after_backward()
            values.append(loss_and_sums(outcome))
        return torch.stack(values).sum(0)
