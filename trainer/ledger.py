"""What updates leave, kept on the device until all workers look at it together."""

import math
import time

import torch
from torch import Tensor

from trainer.errors import NotFiniteError
from trainer.report import Reporter
from trainer.rows import StepRecord
from trainer.runtime import Runtime

REMEDY = "go on from the last checkpoint with a smaller learning rate or another precision"
_LOOK_SECONDS = 1.0  # at least this often, unless one update takes longer


class Ledger:
    """Losses of updates that are not reported yet, and whether to stop after them."""

    def __init__(self, runtime: Runtime, report: Reporter, *, examples: int, step: int) -> None:
        self.stops = False
        self._runtime, self._report, self._examples, self._settled = runtime, report, examples, step
        self._waiting: list[tuple[Tensor, float, int]] = []
        self._patience = 1  # updates until the next look
        self.restart_clock()

    def restart_clock(self) -> None:
        """Leave out of timing what was done since the last update."""
        self._since = time.perf_counter()

    def add(self, values: Tensor, learning_rate: float, epoch: int) -> None:
        """Note an update: means and counts as Training.update returns them."""
        self._waiting.append((values, learning_rate, epoch))

    def is_due(self, step: int, log_every: int) -> bool:
        return step // log_every > self._settled // log_every or step - self._settled >= self._patience

    def settle(self, *, stop: bool) -> None:
        """Report the updates since last time, averaged over workers; agree whether any is asked to stop.

        NotFiniteError names the first update and rank whose loss is no number.
        """
        workers = self._runtime.workers
        mine = self._runtime.device.to_host(torch.stack([values for values, _, _ in self._waiting])).tolist()
        seconds = (time.perf_counter() - self._since) / len(mine)
        everyones = workers.gather([mine, stop, max(1, int(_LOOK_SECONDS / seconds))])
        self.stops, self._patience = any(stops for _, stops, _ in everyones), everyones[0][2]
        by_update = zip(*(rows for rows, _, _ in everyones), strict=True)
        for (_, learning_rate, epoch), by_rank in zip(self._waiting, by_update, strict=True):
            self._settled += 1
            for rank, values in enumerate(by_rank):
                if not math.isfinite(values[0]):
                    found = f"update {self._settled}: the loss of rank {rank} is {values[0]}"
                    self._runtime.stop_all(NotFiniteError(f"{found}; {REMEDY}"))
            sums = [sum(column) for column in zip(*by_rank, strict=True)]
            loss, mlm_loss, nsp_loss = (value / workers.size for value in sums[:3])
            record = StepRecord(
                step=self._settled,
                epoch=epoch,
                loss=loss,
                mlm_loss=mlm_loss,
                nsp_loss=nsp_loss,
                mlm_accuracy=sums[3] / max(sums[4], 1.0),
                nsp_accuracy=sums[6] / max(sums[7], 1.0),
                learning_rate=learning_rate,
                seconds=seconds,
                sequences=self._examples,
            )
            self._report.step(record)
        self._waiting = []
        self.restart_clock()
