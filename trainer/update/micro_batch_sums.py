"""Sums of gradients to which each micro-batch is added after it is clipped, or averaged over the workers."""

from collections.abc import Sequence

import torch
from torch import Tensor

from trainer.config.sections.update import UpdateSection
from trainer.devices.clipping import clip_
from trainer.update.row_norms import RowNorms
from trainer.update.step import WeightStep
from trainer.update.worker import Worker


class MicroBatchSums:
    """The sums of an update's gradients, to which each micro-batch adds its own."""

    def __init__(
        self,
        worker: Worker,
        weights: Sequence[Tensor],
        step: WeightStep,
        row_norms: RowNorms | None = None,
    ) -> None:
        """row_norms: those to clip by; None: the norm of the whole gradients."""
        self._row_norms = row_norms
        self._config, self._workers = worker.config, worker.workers
        self._weights, self._step = weights, step
        self._sums: list[Tensor] = []

    def add(self, divisor: float | Tensor) -> None:
        """Move the gradients of a micro-batch to the sums. divisor: that of its loss."""
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        clip_norm = micro_batch_clip_norm(self._config.update, divisor)
        if clip_norm is not None:
            scale = self._step.scale
            limit = clip_norm if scale.is_one else clip_norm * scale.value
            if self._row_norms is not None:
                clip_(gradients, limit, self._row_norms.all(gradients))
            else:
                clip = self._step.own_clip or clip_
                clip(gradients, limit)
        if not self._config.workers.allreduce_post_accumulation:
            self._workers.average(gradients)
        if self._sums:
            torch._foreach_add_(self._sums, gradients)
        self._sums = self._sums or gradients
        self._step.optimiser.zero_grad()

    def finish(self) -> None:
        """Make the sums the weights' gradients."""
        for weight, gradient in zip(self._weights, self._sums, strict=bool(self._sums)):
            weight.grad = gradient


def micro_batch_clip_norm(keys: UpdateSection, divisor: float | Tensor) -> float | Tensor | None:
    """Norm to clip the gradient of a micro-batch's loss / divisor to. None: not clipped there.

    MLPerf's program clips the gradient of the undivided loss to max_grad_norm, then divides it;
    Habana's clips that of the divided loss.
    """
    norms = {
        "per_micro_batch": keys.max_grad_norm / divisor,
        "per_micro_batch_divided": keys.max_grad_norm,
    }
    return norms.get(keys.clipping_point)
