"""Replicated training: each worker holds the whole model, and the workers average its gradients."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trainer.data.batches import Batch
from trainer.errors import StopRequested
from trainer.update.micro_batch import loss_divisor, seed_micro_batch
from trainer.update.step import make_step
from trainer.update.strategy import Learner, Strategy, StrategyKind, UpdateNumber, Worker, loss_and_sums

if TYPE_CHECKING:
    from trainer.update.averaging import WorkerAverages
    from trainer.update.half_weights import HalfWeights
    from trainer.update.micro_batch_sums import MicroBatchSums


class Replicated(Strategy):
    """Updates by PyTorch's autograd on whole copies of the model, whose gradients the workers average."""

    def __init__(self, worker: Worker) -> None:
        model = worker.model
        self.worker = worker
        self.learner = Learner(worker)
        worker.device.compile(self.learner)
        self._half_weights = self._make_half_weights()
        self.step = make_step(worker.config, worker.device, model.named_parameters())
        self._weights: list[Tensor] = [weight for weight in model.parameters() if weight.requires_grad]
        self._averages = self._make_averages()

    def _make_half_weights(self) -> "HalfWeights | None":
        """The learner with copies of its weights in 16 bits, where the device makes them once an update."""
        if self.worker.config.update.precision == "fp32" or not self.worker.device.casts_once:
            return None
        from trainer.update.half_weights import make_half_weights

        return make_half_weights(self.worker, self.learner)

    def _make_averages(self) -> "WorkerAverages | None":
        """The averages over the workers, where there are several."""
        if self.worker.workers.size == 1:
            return None
        from trainer.update.averaging import WorkerAverages

        leaves = self._half_weights.leaves(self._weights) if self._half_weights else None
        return WorkerAverages(self.worker, self._weights, leaves)

    def _make_sums(self) -> "MicroBatchSums | None":
        """Sums of an update's gradients, where each micro-batch is clipped or averaged on its own."""
        keys = self.worker.config.update
        if keys.allreduce_post_accumulation and keys.micro_batch_clip_norm(1) is None:
            return None
        from trainer.update.micro_batch_sums import MicroBatchSums

        return MicroBatchSums(keys, self._weights, self.step, self.worker.workers)

    def update(
        self, updates: Sequence[Sequence[Batch]], learning_rate: float, first: UpdateNumber
    ) -> list[Tensor]:
        (batches,) = updates
        try:
            values = self._accumulate(batches, first)
        except StopRequested:
            self.step.optimiser.zero_grad()
            raise
        finally:
            self.worker.model.bert.seeds = None
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        if self._averages:
            self._averages.finish(gradients)
        self.step.take(gradients, learning_rate, first.step + 1)
        self.step.optimiser.zero_grad()
        return [values]

    def _accumulate(self, batches: Sequence[Batch], at: UpdateNumber) -> Tensor:
        """Leave the mean of the micro-batches' gradients, times the loss scale, in the weights' grad.

        With reduction_type sum their sum.
        """
        workers, device, averages = self.worker.workers, self.worker.device, self._averages
        divisor = loss_divisor(self.worker.config, len(batches), workers.size)
        averages_each = not self.worker.config.update.allreduce_post_accumulation
        learner = self._half_weights or self.learner
        if self._half_weights:
            self._half_weights.refresh()
        values, sums = list[Tensor](), self._make_sums()
        if averages:
            averages.begin()
        for number, batch in enumerate(batches):
            is_last = number == len(batches) - 1
            workers.stopping.check(exchanges=is_last or averages_each)
            seed_micro_batch(self.worker, at, number)
            outcome = device.forward(learner, batch)
            with averages.last_backward() if averages and is_last else nullcontext():
                self.step.scale.scale(outcome.loss / divisor).backward()  # type: ignore[no-untyped-call]
            device.after_backward()
            values.append(loss_and_sums(outcome))
            if sums:
                sums.add(divisor)
        if sums:
            sums.finish()
        return torch.stack(values).sum(0)

    def compile(self, updates: Sequence[Sequence[Batch]], first: UpdateNumber) -> None:
        """Make updates at rate 0. Those after the first have moments, and may need graphs of their own."""
        for _ in range(self.worker.device.updates_to_compile):
            (values,) = self.update(updates, 0.0, first)
        self.worker.device.to_host(values)  # waits until everything has run

    def moments(self) -> dict[str, Tensor]:
        return {
            f"{kind}/{name}": value
            for name, weight in self.worker.model.named_parameters()
            for kind, value in self.step.optimiser.state.get(weight, {}).items()
            if isinstance(value, Tensor) and kind != "step"
        }

    def load_moments(self, moments: dict[str, Tensor], applied: int) -> None:
        self.step.applied = applied
        weights = dict(self.worker.model.named_parameters())
        states = self.step.optimiser.state
        for key, moment in moments.items():
            kind, _, name = key.partition("/")
            states[weights[name]][kind] = moment
        for group in self.step.optimiser.param_groups:
            if "step" in group:  # our LAMB counts once a group, PyTorch's AdamW once a tensor
                group["step"] = applied
            elif "betas" in group:
                for weight in group["params"]:
                    states[weight]["step"] = torch.tensor(float(applied))


REPLICATED = StrategyKind(Replicated)
