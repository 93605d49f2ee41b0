"""Records of made-up updates, and reports made from them, for tests of logs."""

import builtins
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from bertdata.dataset.label_counts import Frequencies, LabelSurvey
from trainer.config.settings import Config
from trainer.logs.choice import make_loggers
from trainer.logs.reporter import (
    Logger,
    Reporter,
    UpdateRecord,
    Values,
)
from trainer.tasks.evaluation import PretrainingEvaluation
from trainer.tasks.pretraining import Pretraining
from trainer.tasks.task import Columns

COLUMNS = Pretraining.columns


class Clock:
    """A clock in seconds since 1970 that the test advances."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Recorder(Logger):
    """A log that only records the calls of its methods."""

    def __init__(self) -> None:
        self.rows: list[Values] = []
        self.events: list[tuple[str, object]] = []

    def row(self, row, time):
        self.rows.append(row)

    def evaluation(self, values, text, time):
        self.events.append(("evaluation", values["step"]))

    def event(self, name, value, time):
        self.events.append((name, value))


def record(step: int, **changes) -> UpdateRecord:
    values = {
        "epoch": 0,
        "loss": 8.0 - step,
        "metrics": {"mlm_loss": 7.5 - step, "nsp_loss": 0.5, "mlm_accuracy": 0.25, "nsp_accuracy": 0.75},
        "learning_rate": 0.001 * step,
        "seconds": 0.5,
        "sequences": 32,
        "tokens": 3200,
        "operations": 2e12,
        "slots": 4000,
        "data_wait": 0.05,
        "gradient_norm": 0.75,
        "memory_gib": 2.5,
    }
    return UpdateRecord(step=step, **values | changes)


def evaluation(step: int) -> tuple[Values, str]:
    results = {
        "loss": 6.5,
        "masked_lm_accuracy": 0.25,
        "masked_lm_loss": 6.0,
        "next_sentence_accuracy": 0.5,
        "next_sentence_loss": 0.5,
        "most_frequent_accuracy": 0.125,
        "guess_masked_lm_loss": 7.0,
        "guess_next_sentence_accuracy": 0.625,
        "guess_next_sentence_loss": 0.75,
    }
    data = SimpleNamespace(examples=100, name="evaluation set", left_out=0)
    survey = LabelSurvey(Frequencies([0, 3, 2]), '"the"', Frequencies([1, 2]), ("is next", "is random"))
    text = PretrainingEvaluation(data, survey.as_json(), "training").describe(results)
    return {"step": step, "trained": 32 * step, "examples": 100, **results}, text


def make_reporter(
    config: Config,
    columns: Columns,
    *,
    rank: int,
    resume_step: int | None = None,
    peak: float | None = None,
    clock: Callable[[], float] = time.time,
) -> Reporter:
    """Return the reporter of a run with one device."""
    loggers = [] if rank else make_loggers(config, columns, clock(), resume_step)
    every, unit = config.reports.log_every, config.steps_of_update
    return Reporter(loggers, log_every=every, peak=peak, clock=clock, steps_of_update=unit)


def train(reporter: Reporter, steps: range, clock: Clock | None = None) -> Values:
    reporter.begin()
    for step in steps:
        if clock:
            clock.now += 0.5
        reporter.update(record(step))
    return reporter.close()


def report(folder: Path, steps: range, *, resume_step: int | None = None, **keys) -> Values:
    """Log a made-up run in the folder. Each update takes half a second."""
    clock = Clock()
    config = Config.of(output_dir=str(folder), steps=1000, **{"log_every": 1} | keys)
    return train(make_reporter(config, COLUMNS, rank=0, resume_step=resume_step, clock=clock), steps, clock)


def hide(monkeypatch, module: str) -> None:
    real = builtins.__import__

    def refuse(name, *rest):
        if name.startswith(module):
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
