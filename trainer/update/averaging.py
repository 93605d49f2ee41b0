"""Averages of the gradients over the workers, computed during or after the backward pass."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor

from trainer.config.environment import forces_weight_sync
from trainer.config.settings import Config
from trainer.devices.device import HALVES
from trainer.update.worker import Worker
from trainer.workers.collective import Collective
from trainer.workers.worker_group import split_into_buckets


class WorkerAverages:
    """Object that averages the gradients of the weights over the workers, once per update.

    Usually the averages are computed during the last backward pass of the update (``GradientBuckets``).
    Otherwise ``finish`` computes them after it. If ``MicroBatchSums`` averages each micro-batch, no averages
    of the gradients are left to compute.
    """

    def __init__(
        self, worker: Worker, weights: Sequence[Tensor], leaves: Sequence[Tensor] | None = None
    ) -> None:
        """Prepare to average the gradients.

        weights: the weights whose gradients are averaged.
        leaves: for each weight the tensor whose gradient the backward pass computes. It is either the weight
            itself or a 16-bit copy of it. None: the weights themselves.
        """
        workers, keys = worker.collective, worker.config.workers
        self._workers, self._weights, self._type = workers, weights, find_sum_dtype(worker.config)
        self._syncs, self._averages_sums = keys.force_weight_sync, keys.allreduce_post_accumulation
        self._buckets: GradientBuckets | None = None
        # Gradients cannot be averaged during the last backward pass if each micro-batch is averaged or
        # clipped separately. The gradients of earlier micro-batches are then kept in MicroBatchSums, and such
        # an average would leave them out.
        is_once = keys.allreduce_post_accumulation and not worker.config.update.clips_micro_batches
        if is_once and not worker.device.ends_updates:
            self._averages_sums = False
            self._buckets = GradientBuckets(weights, workers, worker.device.bucket_mb, self._type, leaves)

    def begin(self) -> None:
        """Set the gradients to 0. Call this before the first backward pass of an update."""
        if self._buckets:
            self._buckets.reset()

    def last_backward(self) -> AbstractContextManager[None]:
        """Return the context manager in which the update's last backward pass must run."""
        return self._buckets.averaging() if self._buckets else nullcontext()

    def finish(self, gradients: Sequence[Tensor]) -> None:
        """Average the gradients, unless the last backward pass has done it.

        Also average the weights if configured.
        """
        if self._averages_sums:
            self._workers.average(gradients, self._type)
        average_weights(self._workers.average, self._weights, self._syncs)


def average_weights(
    average: Callable[[Iterable[Tensor]], None], weights: Iterable[Tensor], always: bool = False
) -> None:
    """Average the trainable weights over the workers, so that all workers have equal weights.

    This is done only if ``always`` is set or the environment variable FORCE_WEIGHT_SYNC is 1 or true.
    average: ``Collective.average`` for all workers, or ``Subgroup.average`` for some of them.
    always: average whatever the environment says.
    """
    if always or forces_weight_sync():
        average(weight for weight in weights if weight.requires_grad)


def find_sum_dtype(config: Config) -> torch.dtype | None:
    """Return the type in which gradients are summed over the workers. None means the gradients' type."""
    if not config.workers.allreduce_post_accumulation_fp16:
        return None
    return HALVES.get(config.update.precision, torch.float16)


class GradientBuckets:
    """The gradients as views of a few flat tensors ("buckets"), each of which is averaged as
    soon as it is complete.

    One bucket is exchanged while the backward pass computes the gradients of other buckets. The buckets
    contain the same gradients as the buckets of ``Collective.average``, so the sums have the same bits with
    either method. Every worker must start the same exchanges in the same order. So exchanges start from the
    last bucket to the first, whatever the order in which buckets are completed.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        workers: Collective,
        megabytes: int,
        dtype: torch.dtype | None,
        leaves: Sequence[Tensor] | None = None,
    ) -> None:
        """Divide the gradients of the weights into buckets.

        megabytes: size of a bucket.
        dtype: type in which gradients are summed. None means the type of the gradients.
        leaves: for each weight the tensor whose gradient the backward pass computes. With ``HalfWeights`` it
            is a 16-bit copy of the weight. None means the weights.
        """
        self._workers = workers
        self._dtype = dtype
        self._buckets = list(split_into_buckets(weights, megabytes))
        self._flat = [
            bucket[0].new_zeros(sum(weight.numel() for weight in bucket), requires_grad=False)
            for bucket in self._buckets
        ]
        # Number of gradients of each bucket that the backward pass has not computed yet.
        self._missing = [0 for _ in self._buckets]
        self._next = -1  # bucket to exchange next, or -1 if no last backward pass is running
        self._under_way: list[Callable[[], None]] = []
        numbers = (number for number, bucket in enumerate(self._buckets) for _ in bucket)
        # The backward pass begins at the loss, so the last weights get their gradients first. Example with 3
        # buckets: when bucket 2 is complete, its exchange starts. When bucket 0 is complete, it waits for
        # bucket 1. When bucket 1 is complete, the exchanges of 1 and 0 start.
        for leaf, number in zip(leaves or weights, numbers, strict=True):
            leaf.register_post_accumulate_grad_hook(self._make_hook(number))  # type: ignore[no-untyped-call]

    def reset(self) -> None:
        """Set the gradients to 0, and let each weight's gradient be a view of its place in a bucket."""
        for bucket, flat in zip(self._buckets, self._flat, strict=True):
            flat.zero_()
            parts = torch.split(flat, [weight.numel() for weight in bucket])
            for weight, part in zip(bucket, parts, strict=True):
                weight.grad = part.view_as(weight)

    @contextmanager
    def averaging(self) -> Iterator[None]:
        """Return a context that averages the gradients of the backward pass that runs in it.

        This must be the last backward pass of the update. When the context ends, the gradients are
        means over the workers.
        """
        self._missing = [len(bucket) for bucket in self._buckets]
        self._next = len(self._buckets) - 1
        try:
            yield
            # Start the remaining exchanges. If a weight does not take part in the loss, its bucket is never
            # completed by the backward pass.
            while self._next >= 0:
                self._start_next()
            for finish in self._under_way:
                finish()
        finally:
            self._next = -1
            self._under_way = []

    def _make_hook(self, number: int) -> Callable[[Tensor], None]:
        """Return a function that the backward pass calls when it has computed a gradient
        of bucket ``number``.

        The function starts the exchange of each bucket that is complete and next in order.
        """

        def count_gradient(_: Tensor) -> None:
            self._missing[number] -= 1
            while self._next >= 0 and not self._missing[self._next]:
                self._start_next()

        return count_gradient

    def _start_next(self) -> None:
        """Start the exchange that averages the next bucket, and return before the exchange is finished."""
        flat, name = self._flat[self._next], f"bucket.{self._next}"
        self._under_way.append(self._workers.start_average(flat, name, self._dtype))
        self._next -= 1
