"""The report of a run: a Reporter on rank 0 sends rows of means to every configured logger."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from bertdata.errors import SettingsError
from bertdata.io.storage import is_remote, make_directory
from trainer.config.settings import Config
from trainer.model.task import Columns
from trainer.registry import find
from trainer.report.dllogger import Dllogger
from trainer.report.log_records import EvaluationRecord, Logger, StepRecord, Values
from trainer.report.pace import Cards, Pace
from trainer.report.tables import EvaluationResults, Tables
from trainer.report.terminal import Terminal

Clock = Callable[[], float]

SETTLING_UPDATES = 6
"""Updates after the start and after each checkpoint that are not timed, because they are slower."""


class Reporter(AbstractContextManager["Reporter"]):
    """Collects the loop's records into a row every ``log_every`` updates and sends it to the loggers.

    The events are MLPerf's: init until ``begin``, then blocks of training with evaluations between them.
    """

    def __init__(
        self,
        loggers: Sequence[Logger],
        *,
        log_every: int = 1,
        hardware: Cards | None = None,
        clock: Clock = time.time,
    ) -> None:
        self._loggers, self._log_every, self._clock = loggers, log_every, clock
        self._hardware = hardware or Cards()
        self._start = clock()
        self._waiting: list[StepRecord] = []
        self._pace = Pace(hardware=self._hardware)  # of the waiting updates, without settling ones
        self._whole_pace = Pace(hardware=self._hardware)
        self._settling = SETTLING_UPDATES
        self._summary = {"raw_train_time": 0.0}
        self._phase = "init"
        self.event("init_start")

    def begin(self) -> None:
        """Write the events of the start of training."""
        self._enter("block", "run_start")

    def step(self, record: StepRecord) -> None:
        """Add a record; where its step is a multiple of log_every, write a row."""
        self._waiting.append(record)
        self._summary["final_loss"] = record.loss
        self._summary["raw_train_time"] += record.seconds
        if self._settling <= 0 and record.is_timed:
            self._pace.add(record)
            self._whole_pace.add(record)
        self._settling -= 1
        if record.step % self._log_every == 0:
            self._write_row()

    def begin_evaluation(self) -> None:
        self._enter("eval")

    def evaluation(self, record: EvaluationRecord) -> None:
        """Write the result of the evaluation; training continues."""
        self._each("evaluation", record)
        self._enter("block")

    def saved(self, step: int) -> None:
        """Write the event of a checkpoint; the next updates are not timed."""
        self._settling = SETTLING_UPDATES
        self.event("checkpoint", step)

    def event(self, name: str, value: Any = True) -> None:
        self._each("event", name, value)

    def close(self, status: str = "success") -> Values:
        """Write the last row and close every log; returns the summary.

        status: success, stopped (as asked, to be resumed) or aborted. MLPerf knows no stopped.
        """
        if self._waiting:
            self._write_row()
        self.event(f"{self._phase}_stop")
        self.event("run_stop", "aborted" if status == "stopped" else status)
        summary = self._summary | {"e2e_train_time": self._clock() - self._start}
        summary |= {f"training_{name}": rate for name, rate in self._whole_pace.rates().items()}
        self._each("close", summary, status)
        self._loggers = []
        return summary

    def __exit__(self, *failure: object) -> None:
        """Close the logs of a run that ended before its close."""
        if self._loggers:
            self.close("aborted")

    def _write_row(self) -> None:
        rows = [_flat(record) for record in self._waiting]
        means = ("loss", *self._waiting[0].metrics, "seconds", "data_wait")
        row = rows[-1] | {name: fmean(row[name] for row in rows) for name in means}
        row |= {"step_loss": rows[-1]["loss"], "total_time": self._summary["raw_train_time"]}
        if rates := self._pace.rates():
            row |= {"seconds_per_update": self._pace.seconds_per_update, **rates}
        if "memory_gib" in row:
            self._summary["peak_memory_gib"] = row["memory_gib"]
        self._waiting = []
        self._pace = Pace(hardware=self._hardware)
        self._each("row", row)

    def _each(self, method: str, *values: Any) -> None:
        now = self._clock()
        for logger in self._loggers:
            getattr(logger, method)(*values, now)

    def _enter(self, phase: str, *between: str) -> None:
        """Write the end of the current phase and the start of another, with events between them."""
        for name in (f"{self._phase}_stop", *between, f"{phase}_start"):
            self.event(name)
        self._phase = phase


def _flat(record: StepRecord) -> Values:
    """The record's known fields, its metrics among them by name; its counts are for rates alone."""
    row = {name: value for name, value in asdict(record).items() if value is not None}
    del row["tokens"], row["operations"], row["is_timed"]
    metrics: Values = row.pop("metrics")
    return row | metrics


def make_reporter(
    config: Config,
    columns: Columns,
    *,
    rank: int,
    resume_step: int | None = None,
    hardware: Cards | None = None,
    clock: Clock = time.time,
) -> Reporter:
    """The reporter with the configured loggers; on ranks other than 0 without any.

    columns: those of the task. resume_step: the update that the run resumes after; later rows in the logs
    are dropped.
    """
    if rank != 0:
        return Reporter([], log_every=config.reports.log_every, clock=clock)
    output_dir = str(config.run.output_dir)
    if is_remote(output_dir):
        raise SettingsError(f"output_dir is {output_dir}, expected a local directory: logs are appended to")
    make_directory(output_dir)
    folder = Path(output_dir.removeprefix("file://"))
    wanted: list[Logger] = []
    if config.reports.mllog:
        wanted.append(find("log", "mllog")(folder / "mllog.txt", columns))
    if config.reports.tensorboard:
        wanted.append(find("log", "tensorboard")(folder / "tensorboard", resume_step))
    if config.reports.wandb or config.reports.wandb_offline:
        wanted.append(find("log", "wandb")(folder, config, resumes=resume_step is not None))
    if not config.reports.no_logs:  # the tables last: drawing their picture may fail
        wanted.append(Dllogger(Path(config.reports.json_summary or folder / "dllogger.json"), clock()))
        wanted += [EvaluationResults(folder), Tables(folder, columns, resume_step)]
    # The bar last, because packages may print when they are imported; it is the first to close.
    bar = Terminal(columns, config.schedule.steps, resume_step or 0, bar=not config.reports.no_progress_bar)
    return Reporter([bar, *wanted], log_every=config.reports.log_every, hardware=hardware, clock=clock)
