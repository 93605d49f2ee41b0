"""Losses of the newest updates, which stay on the device until all workers log them together.

A loss can only be read after the device has finished the update. If the host read every loss at once it would
wait each time, and the device would idle while the host prepares the next update. So the host queues updates
without waiting and reads the losses of about a second's updates in one copy.
"""

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.data.loader import Loader, Update
from trainer.errors import NotFiniteError
from trainer.logs.reporter import Reporter, UpdateRecord
from trainer.model.headed import OperationCounts, count_operations
from trainer.run.training_state import Training
from trainer.update.strategy import compute_means

REMEDY = "continue from the last checkpoint with a smaller learning rate or another precision"
MOST_WAITING = 0.1
"""If the device waits for data longer than this share of the time, a warning says so."""

_JUDGED_SECONDS = 10.0  # seconds of training before the share is judged
_LEAST_SECONDS = 1e-6
# Seconds between two flushes (readings of the losses), unless a single update takes longer.
_FLUSH_SECONDS = 1.0


class PendingUpdate(NamedTuple):
    """An update that is not logged yet.

    values: sums and weights of loss and metrics, still on the device.
    sequences: examples of the update over all workers.
    counted: tokens, operations and slots of this worker's micro-batches.
    compile_seconds: seconds that the model was compiled in this update, usually 0.
    """

    values: Tensor
    sequences: int
    counted: OperationCounts
    learning_rate: float
    epoch: int
    compile_seconds: float


class PendingUpdates:
    """The updates whose losses are still on the device and not logged yet."""

    def __init__(self, training: Training, report: Reporter, loader: Loader) -> None:
        self._training, self._report, self._loader = training, report, loader
        self._runtime = training.runtime
        self._is_warned = False
        self._reported = training.state.step
        self._waiting: list[PendingUpdate] = []
        self._interval = 1  # updates between two flushes, adjusted after each to take about a second
        self.restart_clock()

    def restart_clock(self) -> None:
        """Start to measure time now, so that a checkpoint or evaluation does not count as training time."""
        self._since = time.perf_counter()
        self._waited_before = self._loader.waited

    def add(self, update: Update, values: Tensor, sequences: int, compile_seconds: float) -> None:
        """Add an update that was made.

        values: sums and weights of loss and metrics, still on the device. sequences: examples over all
        workers. compile_seconds: seconds of compiling in this update, usually 0.
        """
        is_counted = (
            self._runtime.model_share.stage == 0
        )  # all stages of a divided model see the same examples
        counted = (
            count_operations(update.batches, self._training.model.config)
            if is_counted
            else OperationCounts(0, 0.0, 0)
        )
        rate, epoch = self._training.learning_rate, update.position.epoch
        self._waiting.append(PendingUpdate(values, sequences, counted, rate, epoch, compile_seconds))

    def is_due(self, step: int, log_every: int) -> bool:
        """Return True if ``flush`` must be called after update ``step``.

        ``flush`` is due at each multiple of log_every, and otherwise about once a second.
        """
        return step // log_every > self._reported // log_every or step - self._reported >= self._interval

    def flush(self) -> None:
        """Read, average over the workers, and log all updates since the last flush.

        Every worker must call this after the same update. Raises NotFiniteError, which names the first update
        and rank with a loss that is not a number, or the update in which the training diverged.
        """
        if not self._waiting:
            return
        self._log_skipped_updates()
        # Copying the sums waits until the device has finished every pending update. So the time is taken
        # after the copy, not before it.
        mine, norm = self._read()
        elapsed = time.perf_counter() - self._since
        wait = (self._loader.waited - self._waited_before) / len(mine)
        # One exchange for all updates: each worker sends a row of numbers per update.
        told = [
            [*sums, *one.counted, one.compile_seconds] for sums, one in zip(mine, self._waiting, strict=True)
        ]
        own = [told, elapsed, wait, self._runtime.device.peak_memory()]
        of_ranks, elapsed_by_rank, waits, memory = zip(*self._runtime.collective.gather(own), strict=True)
        # Turn rows by rank into rows by update. Two workers, updates a and b:
        # [[a0, b0], [a1, b1]] -> [(a0, a1), (b0, b1)]
        by_update = list(zip(*of_ranks, strict=True))
        compiling = [max(values[-1] for values in by_rank) for by_rank in by_update]
        seconds = _compute_update_seconds(elapsed_by_rank[0], compiling)
        # Choose the number of updates until the next flush so that they take about _FLUSH_SECONDS.
        self._interval = max(1, int(_FLUSH_SECONDS / seconds))
        for one, by_rank, compile_seconds in zip(self._waiting, by_update, compiling, strict=True):
            self._reported += 1
            self._check_losses(by_rank)
            # Sums add up over the workers. compute_means divides each by its weight, which gives the mean
            # over all examples even if one worker had more masked words.
            *sums, tokens, operations, slots, _ = (sum(column) for column in zip(*by_rank, strict=True))
            means = compute_means(self._runtime.task, sums)
            record = UpdateRecord(
                step=self._reported,
                epoch=one.epoch,
                loss=means.pop("loss"),
                metrics=means,
                learning_rate=one.learning_rate,
                seconds=compile_seconds or seconds,
                is_timed=not compile_seconds,
                sequences=one.sequences,
                tokens=tokens,
                operations=operations,
                slots=slots,
                data_wait=max(waits),
                gradient_norm=norm if one is self._waiting[-1] else None,
                memory_gib=max(memory) / 2**30 or None,
            )
            self._report.update(record)
        self._waiting = []
        self._warn_of_waiting()
        self.restart_clock()

    def _warn_of_waiting(self) -> None:
        """Warn once if the device has spent much of its time waiting for data."""
        share = self._report.compute_waited_share(_JUDGED_SECONDS)
        if share > MOST_WAITING and not self._is_warned:
            from trainer.run.slow_data import describe_remedy

            self._is_warned = True
            remedy = describe_remedy(self._runtime.config)
            self._runtime.log(f"warning: the device waits for data {share:.0%} of the time; {remedy}")

    def _check_losses(self, by_rank: Sequence[Sequence[float]]) -> None:
        """End all workers with NotFiniteError if the loss of an update is not a number on some rank."""
        for rank, values in enumerate(by_rank):
            # without a weight divide by 1: with synthetic data the IPU returns no sums
            loss = values[0] / max(values[1], 1.0)
            if not math.isfinite(loss):
                self._runtime.stop_all(
                    NotFiniteError(f"update {self._reported}: the loss of rank {rank} is {loss}; {REMEDY}")
                )

    def _read(self) -> tuple[list[list[float]], float | None]:
        """Copy the sums of each update, and the gradient norm of the last, to the host in one transfer."""
        values = torch.stack([one.values for one in self._waiting])
        norm = self._training.strategy.optimiser_step.gradient_norm
        if norm is None:
            return self._runtime.device.to_host(values).tolist(), None
        both = torch.cat([values.flatten(), norm.reshape(1).to(values)])
        *flat, last = self._runtime.device.to_host(both).tolist()
        width = values.shape[1]
        return [flat[start : start + width] for start in range(0, len(flat), width)], last

    def _log_skipped_updates(self) -> None:
        """Log how many updates were skipped since the last flush, if any."""
        updates = len(self._waiting)
        try:
            found = self._training.strategy.optimiser_step.describe_skipped(updates)
        except NotFiniteError as error:
            self._runtime.stop_all(error)
        if found:
            self._runtime.log(f"update {self._reported + updates}: {found}")


def _compute_update_seconds(elapsed: float, compiling: list[float]) -> float:
    """Return the average seconds per update since the last flush, without the time of compiling.

    elapsed: seconds of all these updates.

    compiling: for each update the seconds that it compiled, usually 0. If all updates compiled, returns their
    average.
    """
    timed = compiling.count(0.0)
    if not timed:
        return elapsed / len(compiling)
    # The difference may be negative, because another worker may have compiled for longer than this worker's
    # whole time.
    return max(elapsed - sum(compiling), _LEAST_SECONDS) / timed
