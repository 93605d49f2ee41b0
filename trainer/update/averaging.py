"""Averages of the gradients over several workers, at the end of an update or in its backward pass."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor

from trainer.config.environment import forces_weight_sync
from trainer.config.settings import Config
from trainer.update.worker import Worker
from trainer.workers.collective import Collective
from trainer.workers.worker_group import split_into_buckets


class WorkerAverages:
    """The averages of some weights' gradients over the workers, once an update."""

    def __init__(
        self, worker: Worker, weights: Sequence[Tensor], leaves: Sequence[Tensor] | None = None
    ) -> None:
        """leaves: as for ``GradientBuckets``."""
        workers, keys = worker.workers, worker.config.workers
        self._workers, self._weights, self._type = workers, weights, sum_type(worker.config)
        self._syncs, self._averages_sums = keys.force_weight_sync, keys.allreduce_post_accumulation
        self._buckets: GradientBuckets | None = None
        # Not in the backward pass where each micro-batch is averaged or clipped on its own.
        is_once = keys.allreduce_post_accumulation and not worker.config.update.clips_micro_batches
        if is_once and not worker.device.own_step:
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
        sync_weights(self._workers.average, self._weights, self._syncs)


def sync_weights(
    average: Callable[[Iterable[Tensor]], None], weights: Iterable[Tensor], always: bool = False
) -> None:
    """Average the trainable weights over the workers, always or if FORCE_WEIGHT_SYNC is 1 or true.

    average: ``Collective.average`` of all workers, or ``Subgroup.average`` of some.
    """
    if always or forces_weight_sync():
        average(weight for weight in weights if weight.requires_grad)


def sum_type(config: Config) -> torch.dtype | None:
    """The type in which gradients are added up over the workers. None: their own."""
    if not config.workers.allreduce_post_accumulation_fp16:
        return None
    return torch.bfloat16 if config.update.precision == "bf16" else torch.float16


class GradientBuckets:
    """The gradients of the weights as views of a few flat tensors, each averaged as soon as it is complete.

    The buckets are those of ``Collective.average`` over the same weights, so a sum has the same bits. They
    are averaged from the last to the first, whatever order the backward pass completes them in: every
    worker starts the same averages in the same order.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        workers: Collective,
        megabytes: int,
        dtype: torch.dtype | None,
        leaves: Sequence[Tensor] | None = None,
    ) -> None:
        """megabytes: the size of a bucket. dtype: the type to add up in, or None for that of the gradients.

        leaves: for each weight the tensor that the backward pass ends at, a copy of it; None: itself.
        """
        self._workers = workers
        self._dtype = dtype
        self._buckets = list(split_into_buckets(weights, megabytes))
        self._flat = [
            bucket[0].new_zeros(sum(weight.numel() for weight in bucket), requires_grad=False)
            for bucket in self._buckets
        ]
        self._missing = [0 for _ in self._buckets]  # gradients that the backward pass has not made yet
        self._next = -1  # the bucket to average next; -1: none
        self._under_way: list[Callable[[], None]] = []
        numbers = (number for number, bucket in enumerate(self._buckets) for _ in bucket)
        for leaf, number in zip(leaves or weights, numbers, strict=True):
            leaf.register_post_accumulate_grad_hook(self._hook(number))  # type: ignore[no-untyped-call]

    def reset(self) -> None:
        """Set the gradients to 0, as views of the buckets."""
        for bucket, flat in zip(self._buckets, self._flat, strict=True):
            flat.zero_()
            parts = torch.split(flat, [weight.numel() for weight in bucket])
            for weight, part in zip(bucket, parts, strict=True):
                weight.grad = part.view_as(weight)

    @contextmanager
    def averaging(self) -> Iterator[None]:
        """The context of an update's last backward pass. On exit the gradients are means over the workers."""
        self._missing = [len(bucket) for bucket in self._buckets]
        self._next = len(self._buckets) - 1
        try:
            yield
            while self._next >= 0:  # a bucket with a weight that the loss does not reach, and those before it
                self._start_next()
            for finish in self._under_way:
                finish()
        finally:
            self._next = -1
            self._under_way = []

    def _hook(self, number: int) -> Callable[[Tensor], None]:
        def count(_: Tensor) -> None:
            self._missing[number] -= 1
            while self._next >= 0 and not self._missing[self._next]:
                self._start_next()

        return count

    def _start_next(self) -> None:
        flat, name = self._flat[self._next], f"bucket.{self._next}"
        self._under_way.append(self._workers.start_average(flat, name, self._dtype))
        self._next -= 1
