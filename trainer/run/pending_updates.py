"""Losses of the last updates, kept on the device until all workers report them together."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.data.batches import Batch
from trainer.data.loader import Update
from trainer.errors import NotFiniteError
from trainer.model.bert import Counted, count
from trainer.report.log_records import StepRecord
from trainer.report.reporter import Reporter
from trainer.run.data_wait import DataWait
from trainer.run.runtime import Runtime
from trainer.run.training import Training
from trainer.strategies.strategy import named_totals

REMEDY = "continue from the last checkpoint with a smaller learning rate or another precision"
_LEAST_SECONDS = 1e-6
_FLUSH_SECONDS = 1.0  # longest time between two flushes, unless one update takes longer


class Pending(NamedTuple):
    """One update: its sums on the device, and what the host knows of it."""

    values: Tensor
    counted: Counted
    learning_rate: float
    epoch: int
    compile_seconds: float


class PendingUpdates:
    """Updates whose losses are not yet reported."""

    def __init__(
        self,
        runtime: Runtime,
        training: Training,
        report: Reporter,
        *,
        waited: Callable[[], float],
        examples: int,
        step: int,
    ) -> None:
        """waited: the seconds that this worker has waited for data so far."""
        self._strategy = training.strategy
        self._shape = training.shape
        self._waited = waited
        self._data_wait = DataWait(runtime.config, runtime.log)
        self._skipped = 0
        self._runtime = runtime
        self._report = report
        self._examples = examples
        self._reported = step
        self._waiting: list[Pending] = []
        self._interval = 1  # most updates until the next flush
        self.restart_clock()

    def restart_clock(self) -> None:
        """Exclude the time since the last update from timing."""
        self._since = time.perf_counter()
        self._waited_before = self._waited()

    def add(
        self, update: Update[Batch], values: Tensor, learning_rate: float, compile_seconds: float
    ) -> None:
        """Add an update that was made; values: its sums as Training.update returns them.

        compile_seconds: those that it took because it compiled the model, else 0.
        """
        is_counted = self._runtime.division.stage == 0  # the stages of a copy have the same examples
        counted = count(update.batches, self._shape) if is_counted else Counted(0, 0.0)
        self._waiting.append(Pending(values, counted, learning_rate, update.position.epoch, compile_seconds))

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
        workers = self._runtime.workers
        mine, norm = self._read()
        elapsed = time.perf_counter() - self._since
        wait = (self._waited() - self._waited_before) / len(mine)
        counts = [list(one.counted) for one in self._waiting]
        compiling = [one.compile_seconds for one in self._waiting]
        own = [mine, counts, compiling, elapsed, wait, self._runtime.device.peak_memory()]
        rows, counted, compiled, elapsed_by_rank, waits, memory = zip(*workers.gather(own), strict=True)
        longest = [max(by_rank) for by_rank in zip(*compiled, strict=True)]
        seconds = _seconds_of_one(elapsed_by_rank[0], longest)
        self._interval = max(1, int(_FLUSH_SECONDS / seconds))
        by_update = zip(
            self._waiting, zip(*rows, strict=True), zip(*counted, strict=True), longest, strict=True
        )
        for one, by_rank, counts_by_rank, compile_seconds in by_update:
            self._reported += 1
            for rank, values in enumerate(by_rank):
                loss = values[0] / max(values[1], 1.0)  # synthetic data has no sums
                if not math.isfinite(loss):
                    found = f"update {self._reported}: the loss of rank {rank} is {loss}"
                    self._runtime.stop_all(NotFiniteError(f"{found}; {REMEDY}"))
            sums = [sum(column) for column in zip(*by_rank, strict=True)]
            totals = named_totals(self._runtime.task, sums)
            means = {name: total / max(weight, 1e-5) for name, (total, weight) in totals.items()}
            tokens, operations = (sum(column) for column in zip(*counts_by_rank, strict=True))
            record = StepRecord(
                step=self._reported,
                epoch=one.epoch,
                loss=means.pop("loss"),
                metrics=means,
                learning_rate=one.learning_rate,
                seconds=compile_seconds or seconds,
                is_timed=not compile_seconds,
                sequences=self._examples,
                tokens=tokens,
                operations=operations,
                data_wait=max(waits),
                gradient_norm=norm if one is self._waiting[-1] else None,
                memory_gib=max(memory) / 2**30 or None,
            )
            self._report.step(record)
        self._data_wait.add(len(mine), seconds, max(waits))
        self._waiting = []
        self.restart_clock()

    def _read(self) -> tuple[list[list[float]], float | None]:
        """The sums of each update, and the norm of the last one's gradients, copied to the host at once."""
        values = torch.stack([one.values for one in self._waiting])
        norm = self._strategy.gradient_norm
        if norm is None:
            return self._runtime.device.to_host(values).tolist(), None
        both = torch.cat([values.flatten(), norm.reshape(1).to(values)])
        *flat, last = self._runtime.device.to_host(both).tolist()
        width = values.shape[1]
        return [flat[start : start + width] for start in range(0, len(flat), width)], last

    def _read_skipped(self) -> None:
        """Log how many updates were skipped since the last flush, if any."""
        try:
            skipped = self._strategy.read_skipped()
        except NotFiniteError as error:
            self._runtime.stop_all(error)
        if new := skipped - self._skipped:
            scale = self._strategy.scale
            now = "" if scale.is_one else f"; the loss scale is now {float(scale.value):g}"
            found = f"{new} of the last {len(self._waiting)} updates skipped: a gradient was not finite{now}"
            self._runtime.log(f"update {self._reported + len(self._waiting)}: {found}")
        self._skipped = skipped


def _seconds_of_one(elapsed: float, compiling: list[float]) -> float:
    """Seconds of an update that compiled nothing; of any, if all did. compiling: 0 for those that did not."""
    timed = compiling.count(0.0)
    if not timed:
        return elapsed / len(compiling)
    return max(elapsed - sum(compiling), _LEAST_SECONDS) / timed  # another worker may have compiled longer
