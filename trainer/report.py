"""A run's report: one Reporter on rank 0 hands rows of means to every log that was asked for."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bertdata.errors import SettingsError, StorageError
from bertdata.storage import is_remote, make_directory
from trainer import sinks
from trainer.config import Config
from trainer.rows import EvaluationRecord, Row, Sink, StepRecord, Summary, Timing
from trainer.terminal import make_terminal

SETTLING_UPDATES = 6  # first updates after the start and after each save: slower, so left out of timing


class Reporter:
    """Turns what the loop reports into rows every ``log_every`` updates, and hands them to the sinks.

    The events are MLPerf's: init until ``begin``, then blocks of training, each evaluation between two.
    """

    def __init__(
        self, sinks: Sequence[Sink], *, log_every: int = 1, clock: Callable[[], float] = time.time
    ) -> None:
        self._sinks = sinks
        self._log_every = log_every
        self._clock = clock
        self._start = clock()
        self._waiting: list[StepRecord] = []
        self._settling = SETTLING_UPDATES
        self._all, self._timed, self._timed_since = Timing(), Timing(), Timing()
        self._loss: float | None = None
        self._open: list[str] = []
        self._interval("init")

    def begin(self) -> None:
        """Everything is loaded; training starts."""
        self._end("init")
        self._interval("run")
        self._interval("block")

    def step(self, record: StepRecord) -> None:
        """Count a record; a row is written where its step is a multiple of log_every."""
        self._waiting.append(record)
        self._loss = record.loss
        for timing in (self._all,) if self._settling > 0 else (self._all, self._timed, self._timed_since):
            timing.add(record)
        self._settling -= record.updates
        if record.step % self._log_every == 0:
            self._write_row()

    def begin_evaluation(self) -> None:
        self._end("block")
        self._interval("eval")

    def evaluation(self, record: EvaluationRecord) -> None:
        """The result of the evaluation that was begun; training goes on."""
        self._each("evaluation", record, self._clock())
        self._end("eval")
        self._interval("block")

    def saved(self, step: int) -> None:
        """A checkpoint was written; the next updates settle again."""
        self._settling = SETTLING_UPDATES
        self.event("checkpoint", step)

    def event(self, name: str, value: Any = True) -> None:
        self._each("event", name, value, self._clock())

    def close(self, status: str = "success") -> Summary:
        """Write what is left and close every log; status is success or aborted."""
        if self._waiting:
            self._write_row()
        for name in reversed(self._open.copy()):
            self._end(name, status if name == "run" else True)
        now = self._clock()
        summary = Summary(
            final_loss=self._loss,
            e2e_seconds=now - self._start,
            raw_seconds=self._all.seconds,
            timing=self._timed,
            status=status,
            time=now,
        )
        self._each("close", summary)
        self._sinks = []
        return summary

    def __enter__(self) -> "Reporter":
        return self

    def __exit__(self, *failure: object) -> None:
        """Close the logs of a run that ended before its close."""
        if self._sinks:
            self.close("aborted")

    def _write_row(self) -> None:
        means, last = _means(self._waiting), self._waiting[-1]
        row = Row(means=means, step_loss=last.loss, timing=self._timed_since, time=self._clock())
        self._waiting, self._timed_since = [], Timing()
        self._each("row", row)

    def _each(self, verb: str, *values: Any) -> None:
        try:
            for sink in self._sinks:
                getattr(sink, verb)(*values)
        except OSError as error:
            raise StorageError(f"{error.filename or 'a log'}: {error.strerror or error}") from error

    def _interval(self, name: str) -> None:
        self._open.append(name)
        self.event(f"{name}_start")

    def _end(self, name: str, value: Any = True) -> None:
        if name in self._open:
            self._open.remove(name)
            self.event(f"{name}_stop", value)


def _means(records: Sequence[StepRecord]) -> StepRecord:
    """One record for all of them, means weighted by their updates."""
    whole = Timing()
    for record in records:
        whole.add(record)
    means = {
        name: sum(getattr(record, name) * record.updates for record in records) / whole.updates
        for name in ("loss", "mlm_loss", "nsp_loss", "mlm_accuracy", "nsp_accuracy")
    }
    return replace(records[-1], **means, **asdict(whole))


def make_reporter(
    config: Config, *, rank: int, resume_step: int | None = None, clock: Callable[[], float] = time.time
) -> Reporter:
    """The reporter that the configuration asks for; without any log on ranks other than 0.

    resume_step: the update that the run resumes after; what the logs hold beyond it is dropped.
    """
    if rank != 0:
        return Reporter([], log_every=config.log_every, clock=clock)
    config.require("output_dir")
    place = str(config.output_dir)
    if is_remote(place):
        raise SettingsError(f"output_dir is {place}, expected a local directory: logs are appended to")
    make_directory(place)
    folder = Path(place.removeprefix("file://"))
    wanted: list[Sink] = [make_terminal(config.steps, resume_step or 0, bar=not config.no_progress_bar)]
    if not config.no_logs:
        wanted.append(sinks.Dllogger(Path(config.json_summary or folder / "dllogger.json"), clock()))
        wanted.append(sinks.EvaluationResults(folder))
    if config.mllog:
        wanted.append(sinks.Mllog(folder / "mllog.txt"))
    if config.tensorboard:
        wanted.append(sinks.TensorBoard(folder / "tensorboard", resume_step))
    if config.wandb or config.wandb_offline:
        wanted.append(sinks.WeightsAndBiases(folder, config, resume_step))
    if not config.no_logs:
        wanted.append(sinks.Tables(folder, resume_step))  # last: what draws a picture at the end may fail
    return Reporter(wanted, log_every=config.log_every, clock=clock)
