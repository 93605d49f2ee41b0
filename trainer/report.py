"""A run's report: one Reporter on rank 0 hands rows of means to every log that was asked for."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from bertdata.errors import SettingsError
from bertdata.io.storage import is_remote, make_directory
from trainer import sinks
from trainer.config import Config
from trainer.rows import EvaluationRecord, Sink, StepRecord, Values
from trainer.terminal import Terminal

Clock = Callable[[], float]

SETTLING_UPDATES = 6  # first updates after the start and after each save: slower, so left out of timing
MEANS = ("loss", "mlm_loss", "nsp_loss", "mlm_accuracy", "nsp_accuracy", "seconds")


class Reporter(AbstractContextManager["Reporter"]):
    """Turns what the loop reports into rows every ``log_every`` updates, and hands them to the sinks.

    The events are MLPerf's: init until ``begin``, then blocks of training, each evaluation between two.
    """

    def __init__(self, sinks: Sequence[Sink], *, log_every: int = 1, clock: Clock = time.time) -> None:
        self._sinks, self._log_every, self._clock = sinks, log_every, clock
        self._start = clock()
        self._waiting: list[StepRecord] = []
        self._timed: list[float] = []  # seconds of those of the waiting updates that are timed
        self._settling = SETTLING_UPDATES
        self._timed_seconds, self._timed_sequences = 0.0, 0
        self._summary = {"raw_train_time": 0.0}
        self._phase = "init"
        self.event("init_start")

    def begin(self) -> None:
        """Everything is loaded; training starts."""
        self._enter("block", "run_start")

    def step(self, record: StepRecord) -> None:
        """Count a record; a row is written where its step is a multiple of log_every."""
        self._waiting.append(record)
        self._summary["final_loss"] = record.loss
        self._summary["raw_train_time"] += record.seconds
        if self._settling <= 0:
            self._timed.append(record.seconds)
        self._settling -= 1
        if record.step % self._log_every == 0:
            self._write_row()

    def begin_evaluation(self) -> None:
        self._enter("eval")

    def evaluation(self, record: EvaluationRecord) -> None:
        """The result of the evaluation that was begun; training goes on."""
        self._each("evaluation", asdict(record))
        self._enter("block")

    def saved(self, step: int) -> None:
        """A checkpoint was written; the next updates settle again."""
        self._settling = SETTLING_UPDATES
        self.event("checkpoint", step)

    def event(self, name: str, value: Any = True) -> None:
        self._each("event", name, value)

    def close(self, status: str = "success") -> Values:
        """Write what is left and close every log; status is success or aborted. Returns the summary."""
        if self._waiting:
            self._write_row()
        self.event(f"{self._phase}_stop")
        self.event("run_stop", status)
        summary = self._summary | {"e2e_train_time": self._clock() - self._start}
        if self._timed_seconds > 0:
            summary["training_sequences_per_second"] = self._timed_sequences / self._timed_seconds
        self._each("close", summary, status)
        self._sinks = []
        return summary

    def __exit__(self, *failure: object) -> None:
        """Close the logs of a run that ended before its close."""
        if self._sinks:
            self.close("aborted")

    def _write_row(self) -> None:
        rows = [asdict(record) for record in self._waiting]
        row = rows[-1] | {name: fmean(row[name] for row in rows) for name in MEANS}
        row |= {"step_loss": rows[-1]["loss"], "total_time": self._summary["raw_train_time"]}
        seconds, sequences = sum(self._timed), len(self._timed) * rows[-1]["sequences"]
        if seconds > 0:
            row |= {"seconds_per_update": fmean(self._timed), "sequences_per_second": sequences / seconds}
        self._timed_seconds += seconds
        self._timed_sequences += sequences
        self._waiting, self._timed = [], []
        self._each("row", row)

    def _each(self, verb: str, *values: Any) -> None:
        now = self._clock()
        for sink in self._sinks:
            getattr(sink, verb)(*values, now)

    def _enter(self, phase: str, *between: str) -> None:
        """End the phase that goes on and begin another."""
        for name in (f"{self._phase}_stop", *between, f"{phase}_start"):
            self.event(name)
        self._phase = phase


def make_reporter(
    config: Config, *, rank: int, resume_step: int | None = None, clock: Clock = time.time
) -> Reporter:
    """The reporter that the configuration asks for; without any log on ranks other than 0.

    resume_step: the update that the run resumes after; what the logs hold beyond it is dropped.
    """
    if rank != 0:
        return Reporter([], log_every=config.log_every, clock=clock)
    place = str(config.output_dir)
    if is_remote(place):
        raise SettingsError(f"output_dir is {place}, expected a local directory: logs are appended to")
    make_directory(place)
    folder = Path(place.removeprefix("file://"))
    wanted: list[Sink] = [Terminal(config.steps, resume_step or 0, bar=not config.no_progress_bar)]
    if config.mllog:
        wanted.append(sinks.Mllog(folder / "mllog.txt"))
    if config.tensorboard:
        wanted.append(sinks.TensorBoard(folder / "tensorboard", resume_step))
    if config.wandb or config.wandb_offline:
        wanted.append(sinks.WeightsAndBiases(folder, config))
    if not config.no_logs:  # the tables last: what draws a picture at the end may fail
        wanted.append(sinks.Dllogger(Path(config.json_summary or folder / "dllogger.json"), clock()))
        wanted += [sinks.EvaluationResults(folder), sinks.Tables(folder, resume_step)]
    return Reporter(wanted, log_every=config.log_every, clock=clock)
