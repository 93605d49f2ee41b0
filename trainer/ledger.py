"""What updates leave, kept on the device until all workers look at it together."""

import math
import time

import torch
from torch import Tensor

from trainer.errors import NotFiniteError, ReportedError
from trainer.report import Reporter
from trainer.rows import StepRecord
from trainer.runtime import Runtime

_SETTLE_SECONDS = 1.0  # at least this often workers agree whether to stop, unless one update takes longer


class Ledger:
    """Losses of updates that are not reported yet, and whether to stop after them."""

    def __init__(self, runtime: Runtime, report: Reporter, examples: int, step: int) -> None:
        self.stops = False
        self._runtime, self._report, self._examples = runtime, report, examples
        self._settled = step
        self._waiting: list[tuple[Tensor, float, int]] = []
        self._patience = 1  # updates until the next look
        self.restart_clock()

    def restart_clock(self) -> None:
        """Leave out of timing what was done since the last update."""
        self._since = time.perf_counter()

    def add(self, values: Tensor, learning_rate: float, epoch: int) -> None:
        self._waiting.append((values, learning_rate, epoch))

    def is_due(self, step: int, log_every: int) -> bool:
        return step % log_every == 0 or step - self._settled >= self._patience

    def settle(self, *, stop: bool) -> None:
        """Report the updates since last time, averaged over workers; agree whether any is asked to stop.

        NotFiniteError names the first update and rank whose loss is no number.
        """
        device, workers = self._runtime.device, self._runtime.workers
        mine = device.to_host(torch.stack([values for values, _, _ in self._waiting])).tolist()
        seconds = (time.perf_counter() - self._since) / len(mine)
        patience = max(1, int(_SETTLE_SECONDS / seconds))
        everyones = workers.gather([mine, stop, patience])
        self.stops = any(stops for _, stops, _ in everyones)
        self._patience = everyones[0][2]
        for (_, learning_rate, epoch), *by_rank in zip(
            self._waiting, *(rows for rows, _, _ in everyones), strict=True
        ):
            self._settled += 1
            for rank, values in enumerate(by_rank):
                self._check_finite(rank, values[0])
            sums = [sum(column) for column in zip(*by_rank, strict=True)]
            loss, mlm_loss, nsp_loss = (value / workers.size for value in sums[:3])
            words_right, words, pairs_right, pairs = sums[3:]
            self._report.step(
                StepRecord(
                    step=self._settled,
                    epoch=epoch,
                    loss=loss,
                    mlm_loss=mlm_loss,
                    nsp_loss=nsp_loss,
                    mlm_accuracy=words_right / max(words, 1.0),
                    nsp_accuracy=pairs_right / max(pairs, 1.0),
                    learning_rate=learning_rate,
                    seconds=seconds,
                    sequences=self._examples,
                )
            )
        self._waiting = []
        self.restart_clock()

    def _check_finite(self, rank: int, loss: float) -> None:
        if math.isfinite(loss):
            return
        if self._runtime.workers.rank != 0:
            raise ReportedError(NotFiniteError.exit_status)
        raise NotFiniteError(
            f"update {self._settled}: the loss of rank {rank} is {loss}; "
            "go on from the last checkpoint with a smaller learning rate or another precision"
        )
