"""Replicated training: each worker holds the whole model, and the workers average its gradients."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trainer.collectives.collective import force_weight_sync
from trainer.config.settings import Config
from trainer.config.update import find_preset
from trainer.data.batches import Batch
from trainer.errors import StopRequested
from trainer.optim.presets import group_parameters
from trainer.strategies.dropout import seed_micro_batch
from trainer.strategies.half_weights import make_half_weights
from trainer.strategies.optimiser import make_scale, optimiser_settings
from trainer.strategies.reduction import loss_divisor
from trainer.strategies.step import make_step
from trainer.strategies.strategy import Inference, Learner, Strategy, UpdateNumber, Worker, loss_and_sums

if TYPE_CHECKING:
    from trainer.strategies.gradient_buckets import GradientBuckets


class Replicated(Strategy):
    """Updates by PyTorch's autograd on whole copies of the model, whose gradients the workers average."""

    def __init__(self, worker: Worker) -> None:
        config, model = worker.config, worker.model
        self._worker = worker
        self._config = config
        self._device = worker.device
        self._workers = worker.workers
        self._model = model
        self._learner = Learner(worker)
        worker.device.compile(self._learner)
        self._half_weights = make_half_weights(worker, self._learner)
        self.inference = Inference(worker, self._learner)
        self.scale = make_scale(config, worker.device)
        preset = find_preset(config.update.optimiser, **optimiser_settings(config))
        self.optimiser = worker.device.optimiser(preset, group_parameters(preset, model.named_parameters()))
        self._step = make_step(config, worker.device, self.optimiser, self.scale)
        self._weights: list[Tensor] = [weight for weight in model.parameters() if weight.requires_grad]
        self._sum_type = sum_type(config)
        self._buckets = self._make_buckets() if averages_in_backward(worker) else None

    def _make_buckets(self) -> "GradientBuckets":
        from trainer.strategies.gradient_buckets import GradientBuckets

        leaves = self._half_weights.leaves(self._weights) if self._half_weights else None
        return GradientBuckets(self._weights, self._workers, self._device.bucket_mb, self._sum_type, leaves)

    @property
    def applied(self) -> int:
        return self._step.applied

    def read_skipped(self) -> int:
        return self._step.read_skipped()

    @property
    def gradient_norm(self) -> Tensor | None:
        return self._step.gradient_norm

    def update(
        self, updates: Sequence[Sequence[Batch]], learning_rate: float, first: UpdateNumber
    ) -> list[Tensor]:
        (batches,) = updates
        config, workers = self._config, self._workers
        try:
            values = self._accumulate(batches, first)
        except StopRequested:
            self.optimiser.zero_grad()
            raise
        finally:
            self._model.bert.seeds = None
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        if config.update.allreduce_post_accumulation and not self._buckets:
            workers.average(gradients, self._sum_type)
        force_weight_sync(workers, self._weights, config.update.force_weight_sync)
        self._step.take(gradients, learning_rate, first.step + 1)
        self._device.after_step()
        self.optimiser.zero_grad()
        return [values]

    def _accumulate(self, batches: Sequence[Batch], at: UpdateNumber) -> Tensor:
        """Leave the mean of the micro-batches' gradients, times the loss scale, in the weights' grad.

        With reduction_type sum their sum.
        """
        config, workers, device = self._config, self._workers, self._device
        count = len(batches)
        divisor = loss_divisor(config, count, workers.size)
        clip_norm = config.update.micro_batch_clip_norm(divisor)
        learner = self._half_weights or self._learner
        if self._half_weights:
            self._half_weights.refresh()
        sums = list[Tensor]()
        values = list[Tensor]()
        if self._buckets:
            self._buckets.reset()
        for number, batch in enumerate(batches):
            is_last = number == count - 1
            workers.stopping.check(exchanges=is_last or not config.update.allreduce_post_accumulation)
            seed_micro_batch(self._worker, at, number)
            outcome = device.forward(learner, batch)
            with self._buckets.averaging() if self._buckets and is_last else nullcontext():
                self.scale.scale(outcome.loss / divisor).backward()  # type: ignore[no-untyped-call]
            device.after_backward()
            values.append(loss_and_sums(outcome))
            if config.update.allreduce_post_accumulation and clip_norm is None:
                continue  # backward adds to grad
            gradients = [weight.grad for weight in self._weights if weight.grad is not None]
            if clip_norm is not None:
                device.clip_(gradients, self.scale.times(clip_norm))
            if not config.update.allreduce_post_accumulation:
                workers.average(gradients)
            if sums:
                torch._foreach_add_(sums, gradients)
            sums = sums or gradients
            self.optimiser.zero_grad()
        for weight, gradient in zip(self._weights, sums, strict=bool(sums)):
            weight.grad = gradient
        return torch.stack(values).sum(0)

    def compile(self, updates: Sequence[Sequence[Batch]], first: UpdateNumber) -> None:
        """Make updates with rate 0; those after the first have moments, and may need graphs of their own."""
        for _ in range(self._device.updates_to_compile):
            (values,) = self.update(updates, 0.0, first)
        self._device.to_host(values)  # waits until everything has run

    def moments(self) -> dict[str, Tensor]:
        return {
            f"{kind}/{name}": value
            for name, weight in self._model.named_parameters()
            for kind, value in self.optimiser.state.get(weight, {}).items()
            if isinstance(value, Tensor) and kind != "step"
        }

    def load_moments(self, moments: dict[str, Tensor], applied: int) -> None:
        self._step.applied = applied
        weights = dict(self._model.named_parameters())
        states = self.optimiser.state
        for key, moment in moments.items():
            kind, _, name = key.partition("/")
            states[weights[name]][kind] = moment
        for group in self.optimiser.param_groups:
            if "step" in group:  # our LAMB counts once a group, PyTorch's AdamW once a tensor
                group["step"] = applied
            elif "betas" in group:
                for weight in group["params"]:
                    states[weight]["step"] = torch.tensor(float(applied))


def sum_type(config: Config) -> torch.dtype | None:
    """The type in which gradients are added up over the workers; None: their own."""
    if not config.update.allreduce_post_accumulation_fp16:
        return None
    return torch.bfloat16 if config.update.precision == "bf16" else torch.float16


def averages_in_backward(worker: Worker) -> bool:
    """True if gradients can be averaged while the last backward pass of an update runs.

    Not if each micro-batch is averaged or clipped on its own, or where the device does not overlap them.
    """
    update = worker.config.update
    is_once = update.allreduce_post_accumulation and update.micro_batch_clip_norm(1) is None
    return worker.workers.size > 1 and worker.device.averages_in_backward and is_once
