"""Losses of the newest updates, which stay on the device until all workers log them together.

The host can read a loss only when the device has finished the update. If it read each loss immediately, it
would wait for the device after every update, and the device would then wait while the host prepares the next
update. So the host starts updates without waiting, and about once a second reads the losses of all updates
since.
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
from trainer.run.processor_threads import BusyProcessorWatch
from trainer.run.training_state import Training
from trainer.update.strategy import compute_means

REMEDY = "continue from the last checkpoint with a smaller learning rate or another precision"
MOST_WAITING = 0.1
"""A warning is logged if the device waits for data for more than this share of the time."""

_JUDGED_SECONDS = 10.0  # seconds of training before the share of waiting is judged
_LEAST_SECONDS = 1e-6
# Seconds between two flushes (readings of the losses), unless a single update takes longer.
_FLUSH_SECONDS = 1.0


class PendingUpdate(NamedTuple):
    """An update that is not logged yet.

    values: sums and the weights to divide them by, for loss and metrics, still on the device.
    sequences: number of examples of the update, over all workers.
    counted: tokens, operations and slots (tokens with padding) of this worker's micro-batches.
    compile_seconds: seconds in which the model was compiled during this update, usually 0.
    """

    values: Tensor
    sequences: int
    counted: OperationCounts
    learning_rate: float
    epoch: int
    compile_seconds: float


class PendingUpdates:
    """The updates that are not logged yet, because their losses are still on the device."""

    def __init__(self, training: Training, report: Reporter, loader: Loader) -> None:
        self._training, self._report, self._loader = training, report, loader
        self._runtime = training.runtime
        self._is_warned = False
        self._watch = BusyProcessorWatch(self._runtime)
        self._reported = training.state.step
        self._waiting: list[PendingUpdate] = []
        # number of updates between two flushes, chosen so that a flush comes about once a second
        self._interval = 1
        self.restart_clock()

    def restart_clock(self) -> None:
        """Start measuring time now, so that the time of a checkpoint or an evaluation does not count as
        training.
        """
        self._since = time.perf_counter()
        self._waited_before = self._loader.waited
        self._watch.restart()

    def add(self, update: Update, values: Tensor, sequences: int, compile_seconds: float) -> None:
        """Add an update that was made but is not logged yet.

        values: for loss and metrics, sums over examples and the weights to divide them by, still on the
        device.
        sequences: number of examples over all workers.
        compile_seconds: seconds in which the model was compiled during this update, usually 0.
        """
        is_counted = (
            self._runtime.model_share.stage == 0
        )  # all stages of a divided model get the same examples, so only the first counts them
        counted = (
            count_operations(update.batches, self._training.model.config)
            if is_counted
            else OperationCounts(0, 0.0, 0)
        )
        rate, epoch = self._training.learning_rate, update.position.epoch
        self._waiting.append(PendingUpdate(values, sequences, counted, rate, epoch, compile_seconds))

    def is_due(self, step: int, log_every: int) -> bool:
        """Return True if ``flush`` must be called after update ``step``.

        This is the case at each multiple of log_every, and otherwise about once a second.
        """
        return step // log_every > self._reported // log_every or step - self._reported >= self._interval

    def flush(self) -> None:
        """Read the losses of all updates since the last flush, average them over the workers, and log them.

        Every worker must call this after the same update. Raises NotFiniteError if a loss is not a number,
        and names the first such update and its rank, or if the training diverged.
        """
        if not self._waiting:
            return
        self._log_skipped_updates()
        # Copying the sums waits until the device has finished all pending updates. So take the time after the
        # copy.
        mine, norm = self._read_sums()
        elapsed = time.perf_counter() - self._since
        self._watch.add(elapsed - (self._loader.waited - self._waited_before))
        wait = (self._loader.waited - self._waited_before) / len(mine)
        # Exchange everything at once: each worker sends one row of numbers per update.
        told = [
            [*sums, *one.counted, one.compile_seconds] for sums, one in zip(mine, self._waiting, strict=True)
        ]
        own = [told, elapsed, wait, self._runtime.device.peak_memory()]
        of_ranks, elapsed_by_rank, waits, memory = zip(*self._runtime.collective.gather(own), strict=True)
        # Regroup the rows from ranks to updates. For two workers and updates a and b: [[a0, b0], [a1, b1]] ->
        # [(a0, a1), (b0, b1)]
        by_update = list(zip(*of_ranks, strict=True))
        compiling = [max(values[-1] for values in by_rank) for by_rank in by_update]
        seconds = _compute_update_seconds(elapsed_by_rank[0], compiling)
        # Choose how many updates to make before the next flush, so that it comes after about _FLUSH_SECONDS.
        self._interval = max(1, int(_FLUSH_SECONDS / seconds))
        for one, by_rank, compile_seconds in zip(self._waiting, by_update, compiling, strict=True):
            self._reported += 1
            self._check_losses(by_rank)
            # Add up the sums and the weights of all workers. compute_means divides sums by weights, which
            # gives the mean over all examples even if one worker had more masked words than another.
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
        """Log a warning, only once in a run, if the device has waited for data for much of its time."""
        share = self._report.compute_waited_share(_JUDGED_SECONDS)
        if share > MOST_WAITING and not self._is_warned:
            from trainer.run.slow_data import describe_remedy

            self._is_warned = True
            remedy = describe_remedy(self._runtime.config)
            self._runtime.log(f"warning: the device waits for data {share:.0%} of the time; {remedy}")

    def _check_losses(self, by_rank: Sequence[Sequence[float]]) -> None:
        """End all workers with NotFiniteError if the loss of an update is not a number on some rank.

        by_rank: for each rank, the numbers that it has sent for the update.
        """
        for rank, values in enumerate(by_rank):
            # If the weight is 0, divide by 1. With synthetic data, IPUs return no sums and no weights.
            loss = values[0] / max(values[1], 1.0)
            if not math.isfinite(loss):
                self._runtime.stop_all(
                    NotFiniteError(f"update {self._reported}: the loss of rank {rank} is {loss}; {REMEDY}")
                )

    def _read_sums(self) -> tuple[list[list[float]], float | None]:
        """Copy the sums of all pending updates, and the gradient norm of the last, from the device in one
        transfer.
        """
        values = torch.stack([one.values for one in self._waiting])
        norm = self._training.strategy.optimiser_step.gradient_norm
        if norm is None:
            return self._runtime.device.to_host(values).tolist(), None
        both = torch.cat([values.flatten(), norm.reshape(1).to(values)])
        *flat, last = self._runtime.device.to_host(both).tolist()
        width = values.shape[1]
        return [flat[start : start + width] for start in range(0, len(flat), width)], last

    def _log_skipped_updates(self) -> None:
        """Log how many updates were skipped since the last flush, if any were."""
        updates = len(self._waiting)
        try:
            found = self._training.strategy.optimiser_step.describe_skipped(updates)
        except NotFiniteError as error:
            self._runtime.stop_all(error)
        if found:
            self._runtime.log(f"update {self._reported + updates}: {found}")


def _compute_update_seconds(elapsed: float, compiling: list[float]) -> float:
    """Return the average seconds per update since the last flush, without the time of compiling.

    elapsed: seconds of all these updates together.
    compiling: for each update, the seconds in which the model was compiled, usually 0. If it was compiled in
    all updates, their average time is returned.
    """
    timed = compiling.count(0.0)
    if not timed:
        return elapsed / len(compiling)
    # The difference may be negative: another worker may have compiled for longer than this worker's whole
    # time.
    return max(elapsed - sum(compiling), _LEAST_SECONDS) / timed
