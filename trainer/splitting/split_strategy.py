"""Base classes for training and evaluating a model that is split, so that no worker has all of it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from bertdata.config.settings import require
from trainer.data.batches import Batch
from trainer.splitting.held import HeldWeights, WeightPart
from trainer.splitting.pieces import build_piece
from trainer.splitting.sharding import free_gathered_weights
from trainer.tasks.task import Outcome
from trainer.update.inference import Inference
from trainer.update.learner import Learner
from trainer.update.make_step import make_optimiser_step
from trainer.update.optimiser import Optimiser
from trainer.update.strategy import Strategy, UpdateNumber, set_softmax_padding
from trainer.update.worker import Worker


class SplitInference(Inference):
    """Evaluation of a split model: the workers compute the results of each batch together."""

    exchanges = True

    @contextmanager
    def evaluating(self) -> Iterator[Callable[[Batch], Outcome]]:
        model, workers = self._worker.model, self._worker.collective

        def measure_together(batch: Batch) -> Outcome:
            with workers.naming_lost_workers():
                return self._measure(batch)

        model.eval()
        with torch.no_grad():
            yield measure_together
        model.train()
        free_gathered_weights(model)

    def _measure(self, batch: Batch) -> Outcome:
        """Return the outcome (loss and metrics) of a batch."""
        outcome: Outcome = self._worker.device.forward(self._learner, batch)
        return outcome

    def weight_parts(self) -> Sequence[WeightPart]:
        """Return the weights, or rows of weights, that this worker holds, in the order of the model."""
        return HeldWeights(self._worker.model, self._worker.model_share).weight_parts()


class SplitStrategy(Strategy):
    """Base class of the strategies for split models.

    The optimiser changes only the weights that the worker holds.
    """

    build = staticmethod(build_piece)
    exchanges_each = True

    def __init__(self, worker: Worker) -> None:
        norm = worker.config.update.clipping_norm
        remedy = "give --clipping-norm whole, or --strategy replicated"
        require(norm == "whole", f"clipping_norm is {norm}, which a divided model does not have: {remedy}")
        self.worker = worker
        set_softmax_padding(worker)
        self.learner = Learner(worker)
        worker.device.compile(self.learner)
        self.held = HeldWeights(worker.model, worker.model_share)
        self.optimiser_step = make_optimiser_step(worker.config, worker.device, self.held.parameters.items())
        self.optimiser.norms, self.optimiser.sizes = self.held.norms, self.held.sizes

    def weight_parts(self) -> Sequence[WeightPart]:
        """Return the weights, or rows of weights, that this worker holds, in the order of the model."""
        return self.held.weight_parts()

    def moment_parts(self) -> Sequence[WeightPart]:
        """Return the optimiser's moments for the weights that this worker holds.

        Moments are zero before the first update.
        """
        return self.held.moment_parts(self.optimiser)

    @property
    def optimiser(self) -> Optimiser:
        """The optimiser object, which is always one of this trainer's own classes.

        A device that brings an optimiser from its own library cannot train split models.
        """
        assert isinstance(self.optimiser_step.optimiser, Optimiser)
        return self.optimiser_step.optimiser

    def set_applied(self, applied: int) -> None:
        """Set the number of updates made so far, when a run is resumed.

        Both the count of this training phase and the count in the optimiser's parameter groups are set.
        """
        self.optimiser_step.applied = applied
        for group in self.optimiser.param_groups:
            group["step"] = applied

    def moments(self) -> dict[str, Tensor]:
        raise AssertionError("no worker has all moments of a split model")

    def load_moments(self, moments: dict[str, Tensor], applied: int) -> None:
        raise AssertionError("no worker has all moments of a split model")


class Sharded(SplitStrategy):
    """Strategy that trains a model sharded by FSDP2, with PyTorch's autograd.

    The gradients of a micro-batch are averaged over the workers during its backward pass. Each worker
    keeps and adds up only the gradients of the rows that it holds, so no worker ever has all
    gradients of the model.
    """

    inference = SplitInference

    def update(
        self, updates: Sequence[Sequence[Batch]], learning_rate: float, first: UpdateNumber
    ) -> list[Tensor]:
        (batches,) = updates
        try:
            with self.worker.collective.naming_lost_workers():
                values = self._accumulate(batches, first)
                self.optimiser_step.take(self.held.list_gradients(), learning_rate, first.update + 1)
        finally:
            self.held.free_gradients()
        return [values]
