"""Replicated training: each worker holds the whole model, and the workers average its gradients."""

from collections.abc import Sequence
from contextlib import nullcontext

import torch
from torch import Tensor

from trainer.data.batches import Batch
from trainer.devices.device import HALVES
from trainer.errors import StopRequested
from trainer.registry import find
from trainer.update.step import make_step
from trainer.update.strategy import (
    Learner,
    Strategy,
    UpdateNumber,
    Worker,
    loss_and_sums,
    loss_divisor,
    seed_micro_batch,
)


class Replicated(Strategy):
    """Updates by PyTorch's autograd on whole copies of the model, whose gradients the workers average."""

    def __init__(self, worker: Worker) -> None:
        model, device, keys = worker.model, worker.device, worker.config.update
        self.worker = worker
        self.learner = Learner(worker)
        device.compile(self.learner)
        self.step = make_step(worker.config, device, model.named_parameters())
        self._weights: list[Tensor] = [weight for weight in model.parameters() if weight.requires_grad]
        self._half_weights = self._averages = None
        leaves = self._weights
        # A layer that is computed again in the backward pass would find the weights themselves.
        if keys.precision != "fp32" and device.casts_once and not model.bert.recomputes:
            self._half_weights = find("update", "weights in 16 bits")(self.learner, HALVES[keys.precision])
            leaves = self._half_weights.leaves(self._weights)
        if worker.workers.size > 1:
            self._averages = find("update", "averages over workers")(worker, self._weights, leaves)
        self._averages_each = not keys.allreduce_post_accumulation
        self._sums_apart = self._averages_each or keys.micro_batch_clip_norm(1) is not None

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
        learner = self._half_weights or self.learner
        if self._half_weights:
            self._half_weights.refresh()
        values, sums = list[Tensor](), None
        if self._sums_apart:
            sums = find("update", "sums of micro-batches")(self.worker, self._weights, self.step)
        if averages:
            averages.begin()
        for number, batch in enumerate(batches):
            is_last = number == len(batches) - 1
            workers.stopping.check(exchanges=is_last or self._averages_each)
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
