"""Sharded training: each worker holds a part of every weight, and gathers a layer where it computes it."""

from collections.abc import Sequence

from torch import Tensor

from trainer.data.batches import Batch
from trainer.extensions.splitting.split_strategy import SplitInference, SplitStrategy
from trainer.update.strategy import Learner, UpdateNumber, Worker


class Sharded(SplitStrategy):
    """Updates by PyTorch's autograd on a model divided by FSDP2.

    Each micro-batch's gradients are averaged over the workers while its backward pass runs, and added up in
    the rows: no worker ever has the gradients of the whole model.
    """

    inference = SplitInference

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
