"""Sums of the gradients of micro-batches that are clipped, or averaged over the workers, separately."""

from collections.abc import Sequence

import torch
from torch import Tensor

from trainer.config.sections.update import UpdateSection
from trainer.devices.clipping import clip_
from trainer.update.row_norms import RowNorms
from trainer.update.step import OptimiserStep
from trainer.update.worker import Worker


class MicroBatchSums:
    """Sums of an update's gradients, stored separately from the weights' ``grad``.

    Usually each backward pass adds to ``grad``. This class is for micro-batches whose gradients must first be
    clipped or averaged. After each backward pass they are moved from ``grad`` to the sums.
    """

    def __init__(
        self,
        worker: Worker,
        weights: Sequence[Tensor],
        step: OptimiserStep,
        row_norms: RowNorms | None = None,
    ) -> None:
        """Prepare the sums of the weights' gradients.

        step: optimiser step. Its loss scale and clipping function are used.
        row_norms: object that computes the norm to clip by, with each row of an embedding's gradient counted
            separately. None to clip by the usual norm of the gradients.
        """
        self._row_norms = row_norms
        self._config, self._workers = worker.config, worker.collective
        self._weights, self._step = weights, step
        self._sums: list[Tensor] = []

    def add(self, divisor: float | Tensor) -> None:
        """Clip and average the gradients of a micro-batch as configured, and move them to the sums.

        divisor: the number by which the micro-batch's loss was divided.
        """
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        clip_norm = find_clip_norm(self._config.update, divisor)
        if clip_norm is not None:
            # The gradients are still multiplied by the loss scale, so the clipping limit is multiplied by it
            # too.
            scale = self._step.scale
            limit = clip_norm if scale.is_one else clip_norm * scale.value
            if self._row_norms is not None:
                clip_(gradients, limit, self._row_norms.compute_total(gradients))
            else:
                clip = self._step.device_clip or clip_
                clip(gradients, limit)
        if not self._config.workers.allreduce_post_accumulation:
            self._workers.average(gradients)
        if self._sums:
            torch._foreach_add_(self._sums, gradients)
        self._sums = self._sums or gradients
        self._step.optimiser.zero_grad()

    def finish(self) -> None:
        """Set each weight's ``grad`` to the sum of the weight's gradients."""
        for weight, gradient in zip(self._weights, self._sums, strict=bool(self._sums)):
            weight.grad = gradient


def find_clip_norm(keys: UpdateSection, divisor: float | Tensor) -> float | Tensor | None:
    """Return the norm to which a micro-batch's gradients are clipped, or None if they are not clipped.

    MLPerf's program clips the gradient of the undivided loss to max_grad_norm and then divides it. Habana's
    program clips the gradient of the divided loss.
    divisor: the number by which the micro-batch's loss was divided before the backward pass.
    """
    norms = {
        "per_micro_batch": keys.max_grad_norm / divisor,
        "per_micro_batch_divided": keys.max_grad_norm,
    }
    return norms.get(keys.clipping_point)
