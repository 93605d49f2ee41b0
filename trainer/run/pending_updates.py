"""Losses of the last updates, kept on the device until all workers report them together."""

import math
import time

import torch
from torch import Tensor

from trainer.errors import NotFiniteError
from trainer.report.log_records import StepRecord
from trainer.report.reporter import Reporter
from trainer.run.runtime import Runtime
from trainer.strategies.strategy import Strategy, named_totals

REMEDY = "continue from the last checkpoint with a smaller learning rate or another precision"
_FLUSH_SECONDS = 1.0  # longest time between two flushes, unless one update takes longer


class PendingUpdates:
    """Updates whose losses are not yet reported."""

    def __init__(
        self, runtime: Runtime, strategy: Strategy, report: Reporter, *, examples: int, step: int
    ) -> None:
        self._strategy = strategy
        self._skipped = 0
        self._runtime = runtime
        self._report = report
        self._examples = examples
        self._reported = step
        self._waiting: list[tuple[Tensor, float, int]] = []
        self._interval = 1  # most updates until the next flush
        self.restart_clock()

    def restart_clock(self) -> None:
        """Exclude the time since the last update from timing."""
        self._since = time.perf_counter()

    def add(self, values: Tensor, learning_rate: float, epoch: int) -> None:
        """Add an update: its sums as Training.update returns them."""
        self._waiting.append((values, learning_rate, epoch))

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
        mine = self._runtime.device.to_host(torch.stack([values for values, _, _ in self._waiting])).tolist()
        seconds = (time.perf_counter() - self._since) / len(mine)
        gathered = workers.gather([mine, max(1, int(_FLUSH_SECONDS / seconds))])
        self._interval = gathered[0][1]
        by_update = zip(*(rows for rows, _ in gathered), strict=True)
        for (_, learning_rate, epoch), by_rank in zip(self._waiting, by_update, strict=True):
            self._reported += 1
            for rank, values in enumerate(by_rank):
                loss = values[0] / max(values[1], 1.0)  # synthetic data has no sums
                if not math.isfinite(loss):
                    found = f"update {self._reported}: the loss of rank {rank} is {loss}"
                    self._runtime.stop_all(NotFiniteError(f"{found}; {REMEDY}"))
            sums = [sum(column) for column in zip(*by_rank, strict=True)]
            totals = named_totals(self._runtime.task, sums)
            means = {name: total / max(weight, 1e-5) for name, (total, weight) in totals.items()}
            record = StepRecord(
                step=self._reported,
                epoch=epoch,
                loss=means.pop("loss"),
                metrics=means,
                learning_rate=learning_rate,
                seconds=seconds,
                sequences=self._examples,
            )
            self._report.step(record)
        self._waiting = []
        self.restart_clock()

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
