"""Averages of the gradients over the workers, computed after the backward pass or overlapping with it."""

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
    """Averages the gradients of the weights over the workers, once per update.

    Usually the averages overlap with the last backward pass of the update (``GradientBuckets``). Otherwise
    ``finish`` computes them at the end, unless ``MicroBatchSums`` has averaged each micro-batch. In that
    case, ``finish`` only averages the weights, if that is configured.
    """

    def __init__(
        self, worker: Worker, weights: Sequence[Tensor], leaves: Sequence[Tensor] | None = None
    ) -> None:
        """Prepare the averages.

        leaves: for each weight the tensor whose gradient the backward pass computes: a 16-bit copy, or the
        weight. None: the weights themselves.
        """
        workers, keys = worker.collective, worker.config.workers
        self._workers, self._weights, self._type = workers, weights, sum_dtype(worker.config)
        self._syncs, self._averages_sums = keys.force_weight_sync, keys.allreduce_post_accumulation
        self._buckets: GradientBuckets | None = None
        # Averaging cannot overlap with the last backward pass if each micro-batch is averaged or clipped
        # separately. Then the earlier micro-batches' gradients are kept in MicroBatchSums, and an average
        # during the last pass would leave them out.
        is_once = keys.allreduce_post_accumulation and not worker.config.update.clips_micro_batches
        if is_once and not worker.device.ends_updates:
            self._averages_sums = False
            self._buckets = GradientBuckets(weights, workers, worker.device.bucket_mb, self._type, leaves)

    def begin(self) -> None:
        """Set the gradients to 0 before the first backward pass of an update."""
        if self._buckets:
            self._buckets.reset()

    def last_backward(self) -> AbstractContextManager[None]:
        """Return the context manager for the update's last backward pass."""
        return self._buckets.averaging() if self._buckets else nullcontext()

    def finish(self, gradients: Sequence[Tensor]) -> None:
        """Average the gradients unless the backward pass has done it.

        Also average the weights if configured.
        """
        if self._averages_sums:
            self._workers.average(gradients, self._type)
        sync_weights(self._workers.average, self._weights, self._syncs)


def sync_weights(
    average: Callable[[Iterable[Tensor]], None], weights: Iterable[Tensor], always: bool = False
) -> None:
    """Average the trainable weights over the workers, if ``always`` or if FORCE_WEIGHT_SYNC is 1 or true.

    average: ``Collective.average`` for all workers, or ``Subgroup.average`` for some of them.
    """
    if always or forces_weight_sync():
        average(weight for weight in weights if weight.requires_grad)


def sum_dtype(config: Config) -> torch.dtype | None:
    """Return the type in which gradients are summed over the workers, or None for the gradients' type."""
    if not config.workers.allreduce_post_accumulation_fp16:
        return None
    return torch.bfloat16 if config.update.precision == "bf16" else torch.float16


class GradientBuckets:
    """The gradients as views of a few flat tensors ("buckets"), each averaged as soon as it is complete.

    The exchange of one bucket overlaps with the backward pass that still computes the others. The buckets
    contain the same gradients as the buckets of ``Collective.average``, so the sums have the same bits with
    either method. Exchanges start from the last bucket to the first, in whatever order the buckets are
    completed, because every worker must start the same exchanges in the same order.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        workers: Collective,
        megabytes: int,
        dtype: torch.dtype | None,
        leaves: Sequence[Tensor] | None = None,
    ) -> None:
        """megabytes: size of a bucket. dtype: type of the sums, or None for the gradients' type.
        leaves: for each weight the tensor at which the backward pass ends. This is a 16-bit copy of the
        weight with ``HalfWeights``. None: the weights themselves.
        """
        self._workers = workers
        self._dtype = dtype
        self._buckets = list(split_into_buckets(weights, megabytes))
        self._flat = [
            bucket[0].new_zeros(sum(weight.numel() for weight in bucket), requires_grad=False)
            for bucket in self._buckets
        ]
        # gradients of each bucket that the backward pass has not computed yet
        self._missing = [0 for _ in self._buckets]
        self._next = -1  # bucket to exchange next, or -1 outside of the last backward pass
        self._under_way: list[Callable[[], None]] = []
        numbers = (number for number, bucket in enumerate(self._buckets) for _ in bucket)
        # The backward pass begins at the loss, so the last weights get their gradients first. Example with 3
        # buckets: bucket 2 completes and starts, bucket 0 completes and waits for bucket 1, then 1 completes
        # and both start.
        for leaf, number in zip(leaves or weights, numbers, strict=True):
            leaf.register_post_accumulate_grad_hook(self._make_hook(number))  # type: ignore[no-untyped-call]

    def reset(self) -> None:
        """Set the gradients to 0, and make each gradient a view of its part of a bucket."""
        for bucket, flat in zip(self._buckets, self._flat, strict=True):
            flat.zero_()
            parts = torch.split(flat, [weight.numel() for weight in bucket])
            for weight, part in zip(bucket, parts, strict=True):
                weight.grad = part.view_as(weight)

    @contextmanager
    def averaging(self) -> Iterator[None]:
        """Average the gradients during the context, which must hold the update's last backward pass.

        When the context ends, the gradients are the means over the workers.
        """
        self._missing = [len(bucket) for bucket in self._buckets]
        self._next = len(self._buckets) - 1
        try:
            yield
            # start the remaining buckets: if a weight does not take part in the loss, its bucket never
            # completes by itself
            while self._next >= 0:
                self._start_next()
            for finish in self._under_way:
                finish()
        finally:
            self._next = -1
            self._under_way = []

    def _make_hook(self, number: int) -> Callable[[Tensor], None]:
        """Return a hook that the backward pass calls when a gradient of bucket ``number`` is complete.

        The hook starts the exchange of each bucket that is now complete and next in order.
        """

        def count(_: Tensor) -> None:
            self._missing[number] -= 1
            while self._next >= 0 and not self._missing[self._next]:
                self._start_next()

        return count

    def _start_next(self) -> None:
        """Start to average the next bucket. The call returns before the exchange is finished."""
        flat, name = self._flat[self._next], f"bucket.{self._next}"
        self._under_way.append(self._workers.start_average(flat, name, self._dtype))
        self._next -= 1
