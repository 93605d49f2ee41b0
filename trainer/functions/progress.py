"""The progress of a run as the caller of a function sees it, and the logger that collects a run's results."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from io import TextIOBase
from typing import Literal, NamedTuple, TextIO, cast

from bertdata.io.terminal import say_error
from trainer.functions.results import EvaluationResult
from trainer.logs.reporter import Logger, Values
from trainer.workers.launchers import find_rank

_WARNING = "trainer: warning: "


class TrainingProgress(NamedTuple):
    """Progress of a training run.

    step: number of the last update.
    steps: number of updates of the run.
    loss: mean loss of the updates since the last report. None in the report of an evaluation.
    values: all numbers of the row or of the evaluation, by name.
    evaluation: the result of an evaluation. None: the report is about updates.
    """

    step: int
    steps: int
    loss: float | None
    values: Values
    evaluation: EvaluationResult | None = None


OnTraining = Callable[[TrainingProgress], None]
"""Callback that a run calls after every ``log_every`` updates and after each evaluation."""

Progress = OnTraining | Literal[False] | None
"""Way in which a function shows its progress.

None prints the lines of the command to standard error, on a terminal with a bar. In a notebook the bar is
part of the cell. False prints nothing. A function is called with each ``TrainingProgress``, and nothing is
printed.
"""


class ResultLogger(Logger):
    """Logger that collects the rows and evaluations of a run, and passes them on to the caller's function.

    rows: the rows, in order.
    evaluations: the results of the evaluations, in order.
    summary: the summary at the end, with the keys of dllogger. Empty before the end.
    is_stopped: True if the run was stopped before its last update.
    """

    def __init__(self, on_training: OnTraining | None, *, replaces_terminal: bool = False) -> None:
        self.replaces_terminal = replaces_terminal
        self.rows: list[Values] = []
        self.evaluations: list[EvaluationResult] = []
        self.summary: Values = {}
        self.is_stopped = False
        self._on_training = on_training
        self._steps = 0

    def plan(self, values: Values, time: float) -> None:
        self._steps = values["steps"]

    def row(self, row: Values, time: float) -> None:
        self.rows.append(dict(row))
        self._report(TrainingProgress(row["step"], self._steps, row["loss"], dict(row)))

    def evaluation(self, values: Values, text: str, time: float) -> None:
        counts = ("step", "trained", "examples")
        metrics = {name: value for name, value in values.items() if name not in counts}
        found = EvaluationResult(**{name: values[name] for name in counts}, metrics=metrics, text=text)
        self.evaluations.append(found)
        self._report(TrainingProgress(found.step, self._steps, None, dict(values), found))

    def close(self, summary: Values, status: str, time: float) -> None:
        self.summary = dict(summary)
        self.is_stopped = status != "success"

    def _report(self, now: TrainingProgress) -> None:
        if self._on_training is not None:
            self._on_training(now)


@dataclass(slots=True)
class Watched:
    """Warnings and logged results of a run.

    logger: the logger to give to the run.
    warnings: the warnings that were printed, without their beginning.
    seconds: time that the run took, in seconds. 0 before its end.
    """

    logger: ResultLogger
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0


@contextmanager
def watch(progress: Progress) -> Iterator[Watched]:
    """Collect the warnings and results of a run in the block, and print or hide the run's lines.

    progress: how to show the progress.
    """
    on_training = progress if callable(progress) else None
    watched = Watched(ResultLogger(on_training, replaces_terminal=progress is not None))
    start = time.monotonic()
    lines = _Lines(sys.stderr if progress is None else None, watched.warnings)
    with redirect_stderr(cast(TextIO, lines)):
        yield watched
    watched.seconds = time.monotonic() - start


def announce_torch() -> None:
    """Print a line that torch is being imported, unless it is imported already, because that takes seconds.

    The command also lets Ctrl-C end the process during the import. A program with a notebook must not end.
    """
    if "torch" not in sys.modules and find_rank()[0] == 0:
        say_error("trainer: importing torch")


class _Lines(TextIOBase):
    """Stream that keeps the warnings among its lines, and passes everything on to another stream.

    target: the other stream. None: nothing is passed on.
    warnings: list to which the warnings are added.
    """

    def __init__(self, target: TextIO | None, warnings: list[str]) -> None:
        self._target = target
        self._warnings = warnings

    def write(self, text: str) -> int:
        for line in text.splitlines():
            if line.startswith(_WARNING):
                self._warnings.append(line.removeprefix(_WARNING))
        return len(text) if self._target is None else self._target.write(text)

    def flush(self) -> None:
        if self._target is not None:
            self._target.flush()

    def isatty(self) -> bool:
        return self._target is not None and self._target.isatty()

    def fileno(self) -> int:
        return super().fileno() if self._target is None else self._target.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base class has an attribute
        return "utf-8" if self._target is None else self._target.encoding
