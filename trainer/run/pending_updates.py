"""Losses of the last updates, kept on the device until all workers report them together."""

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.data.loader import Loader, Update
from trainer.errors import NotFiniteError
from trainer.logs.reporter import Reporter, StepRecord
from trainer.model.headed import Counted, count
from trainer.run.training_state import Training
from trainer.update.strategy import named_means

REMEDY = "continue from the last checkpoint with a smaller learning rate or another precision"
MOST_WAITING = 0.1
"""The share of the time from which on the device is said to wait for data."""

_JUDGED_SECONDS = 10.0  # shortest time to judge that from
_LEAST_SECONDS = 1e-6
_FLUSH_SECONDS = 1.0  # longest time between two flushes, unless one update takes longer


class Pending(NamedTuple):
    """One update: its sums on the device, and what the host knows of it. sequences: over all workers."""

    values: Tensor
    sequences: int
    counted: Counted
    learning_rate: float
    epoch: int
    compile_seconds: float


class PendingUpdates:
    """Updates whose losses are not yet reported."""

    def __init__(self, training: Training, report: Reporter, loader: Loader) -> None:
        self._training, self._report, self._loader = training, report, loader
        self._runtime = training.runtime
        self._is_warned = False
        self._reported = training.state.step
        self._waiting: list[Pending] = []
        self._interval = 1  # most updates until the next flush
        self.restart_clock()

    def restart_clock(self) -> None:
        """Exclude the time since the last update from timing."""
        self._since = time.perf_counter()
        self._waited_before = self._loader.waited

    def add(self, update: Update, values: Tensor, sequences: int, compile_seconds: float) -> None:
        """Add an update that was made. values: its sums as Training.update returns them.

        sequences: over all workers. compile_seconds: its own if the model was compiled in it, else 0.
        """
        is_counted = self._runtime.division.stage == 0  # the stages of a copy have the same examples
        counted = count(update.batches, self._training.model.config) if is_counted else Counted(0, 0.0, 0)
        rate, epoch = self._training.learning_rate, update.position.epoch
        self._waiting.append(Pending(values, sequences, counted, rate, epoch, compile_seconds))

    def is_due(self, step: int, log_every: int) -> bool:
        """True after log_every updates, or about a second."""
        return step // log_every > self._reported // log_every or step - self._reported >= self._interval

    def flush(self) -> None:
        """Report the updates since the last flush, averaged over workers.

        NotFiniteError names the first update and rank whose loss is not a number, or the update at which
        the training diverged.
        """
        if not self._waiting:
            return
        self._read_skipped()
        mine, norm = self._read()
        elapsed = time.perf_counter() - self._since
        wait = (self._loader.waited - self._waited_before) / len(mine)
        told = [
            [*sums, *one.counted, one.compile_seconds] for sums, one in zip(mine, self._waiting, strict=True)
        ]
        own = [told, elapsed, wait, self._runtime.device.peak_memory()]
        of_ranks, elapsed_by_rank, waits, memory = zip(*self._runtime.workers.gather(own), strict=True)
        by_update = list(zip(*of_ranks, strict=True))
        compiling = [max(values[-1] for values in by_rank) for by_rank in by_update]
        seconds = _seconds_of_one(elapsed_by_rank[0], compiling)
        self._interval = max(1, int(_FLUSH_SECONDS / seconds))
        for one, by_rank, compile_seconds in zip(self._waiting, by_update, compiling, strict=True):
            self._reported += 1
            self._check_losses(by_rank)
            *sums, tokens, operations, slots, _ = (sum(column) for column in zip(*by_rank, strict=True))
            means = named_means(self._runtime.task, sums)
            record = StepRecord(
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
            self._report.step(record)
        self._waiting = []
        self._warn_of_waiting()
        self.restart_clock()

    def _warn_of_waiting(self) -> None:
        """Warn once where the device has waited for data for long."""
        share = self._report.waited_share(_JUDGED_SECONDS)
        if share > MOST_WAITING and not self._is_warned:
            from trainer.run.slow_data import remedy

            self._is_warned = True
            found = f"the device waits for data {share:.0%} of the time"
            self._runtime.log(f"warning: {found}; {remedy(self._runtime.config)}")

    def _check_losses(self, by_rank: Sequence[Sequence[float]]) -> None:
        """NotFiniteError names the first rank whose loss of the update is not a number. Ends all workers."""
        for rank, values in enumerate(by_rank):
            loss = values[0] / max(values[1], 1.0)  # synthetic data has no sums
            if not math.isfinite(loss):
                found = f"update {self._reported}: the loss of rank {rank} is {loss}"
                self._runtime.stop_all(NotFiniteError(f"{found}; {REMEDY}"))

    def _read(self) -> tuple[list[list[float]], float | None]:
        """The sums of each update, and the norm of the last one's gradients, copied to the host at once."""
        values = torch.stack([one.values for one in self._waiting])
        norm = self._training.strategy.step.gradient_norm
        if norm is None:
            return self._runtime.device.to_host(values).tolist(), None
        both = torch.cat([values.flatten(), norm.reshape(1).to(values)])
        *flat, last = self._runtime.device.to_host(both).tolist()
        width = values.shape[1]
        return [flat[start : start + width] for start in range(0, len(flat), width)], last

    def _read_skipped(self) -> None:
        """Log how many updates were skipped since the last flush, if any."""
        updates = len(self._waiting)
        try:
            found = self._training.strategy.step.tell_skipped(updates)
        except NotFiniteError as error:
            self._runtime.stop_all(error)
        if found:
            self._runtime.log(f"update {self._reported + updates}: {found}")


def _seconds_of_one(elapsed: float, compiling: list[float]) -> float:
    """Seconds of an update that compiled nothing, or of any if all did. compiling: 0 if it did not."""
    timed = compiling.count(0.0)
    if not timed:
        return elapsed / len(compiling)
    return max(elapsed - sum(compiling), _LEAST_SECONDS) / timed  # another worker may have compiled longer
