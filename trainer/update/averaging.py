"""Averages of the gradients over several workers, at the end of an update or in its backward pass."""

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from trainer.config.settings import Config
from trainer.update.gradient_buckets import GradientBuckets
from trainer.update.strategy import Worker


class WorkerAverages:
    """The averages of some weights' gradients over the workers, once an update."""

    def __init__(
        self, worker: Worker, weights: Sequence[Tensor], leaves: Sequence[Tensor] | None = None
    ) -> None:
        """leaves: as for ``GradientBuckets``."""
        workers, keys = worker.workers, worker.config.update
        self._workers, self._weights, self._type = workers, weights, sum_type(worker.config)
        self._syncs, self._averages_sums = keys.force_weight_sync, keys.allreduce_post_accumulation
        self._buckets: GradientBuckets | None = None
        # Not in the backward pass where each micro-batch is averaged or clipped on its own.
        is_once = keys.allreduce_post_accumulation and keys.micro_batch_clip_norm(1) is None
        if is_once and worker.device.averages_in_backward:
            self._averages_sums = False
            self._buckets = GradientBuckets(weights, workers, worker.device.bucket_mb, self._type, leaves)

    def begin(self) -> None:
        """Set the gradients to 0 before the first backward pass, where later ones average them."""
        if self._buckets:
            self._buckets.reset()

    def last_backward(self) -> AbstractContextManager[None]:
        """The context of the update's last backward pass."""
        return self._buckets.averaging() if self._buckets else nullcontext()

    def finish(self, gradients: Sequence[Tensor]) -> None:
        """Average the gradients where no backward pass has done it, and the weights if it is configured."""
        if self._averages_sums:
            self._workers.average(gradients, self._type)
        sync_weights(self._workers, self._weights, self._syncs)


def sync_weights(workers: Any, weights: Iterable[Tensor], always: bool = False) -> None:
    """Average the trainable weights over the workers, always or if FORCE_WEIGHT_SYNC is 1 or true.

    workers: all of them, or some, that have ``Collective.average``.
    """
    if always or os.environ.get("FORCE_WEIGHT_SYNC", "").lower() in ("1", "true"):
        workers.average(weight for weight in weights if weight.requires_grad)


def sum_type(config: Config) -> torch.dtype | None:
    """The type in which gradients are added up over the workers. None: their own."""
    if not config.update.allreduce_post_accumulation_fp16:
        return None
    return torch.bfloat16 if config.update.precision == "bf16" else torch.float16
