"""Tables of a run: training.csv and evaluation.csv."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from bertdata.io import storage
from trainer.model.task import Columns
from trainer.registry import find
from trainer.report.reporter import MEASURES, EvaluationRecord, Logger, Values

_BEFORE_METRICS = {"step": "step", "iteration": "step", "epoch": "epoch", "lr": "learning_rate"}
_AFTER_METRICS = {
    "iter_time": "seconds",
    "samples_per_sec": "sequences_per_second",
    "total_time": "total_time",
}
"""The key of a row for each of Graphcore's columns of training.csv, around those of the task's metrics."""

_BEFORE_RESULTS = ("step", "trained", "examples")
"""The columns of evaluation.csv before the task's results."""


class Tables(Logger):
    """Graphcore's training.csv and evaluation.csv.

    training.csv has further columns of ours after Graphcore's; a value that is not known is left empty.
    A resumed run appends to its tables. Each evaluation is written to Google's eval_results.txt too.
    """

    def __init__(self, folder: Path, columns: Columns, resume_step: int | None) -> None:
        self._folder = folder
        self._training = {**_BEFORE_METRICS, **columns.training, **_AFTER_METRICS}
        self._training |= {name: name for name in MEASURES}
        self._evaluation = (*_BEFORE_RESULTS, *columns.evaluation)
        _begin_table(folder / "training.csv", self._training, resume_step)
        _begin_table(folder / "evaluation.csv", self._evaluation, resume_step)

    def row(self, row: Values, time: float) -> None:
        self._append("training.csv", [row.get(name, "") for name in self._training.values()])

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        find("log", "results")(self._folder).evaluation(record, time)
        values = record.values()
        self._append("evaluation.csv", [values[name] for name in self._evaluation])

    def _append(self, name: str, values: Iterable[Any]) -> None:
        with (self._folder / name).open("a", encoding="utf-8") as file:
            file.write(_line(values))


def _begin_table(path: Path, columns: Collection[str], resume_step: int | None) -> None:
    """Begin the table, or cut it after the resumed step. An earlier phase's table is renamed.

    Rows that an earlier version wrote, with fewer columns, are continued with empty ones.
    """
    lines = [_line(columns)]
    if path.exists() and resume_step is not None:
        from trainer.report.table_rows import read_table

        rows = read_table(path)
        kept = [row for row in rows if int(row["step"]) <= resume_step]
        lines += [_line(row.get(name, "") for name in columns) for row in kept]
    elif path.exists():
        number = len(list(path.parent.glob(f"{path.stem}*.csv")))
        path.rename(path.with_suffix(f".{number}.csv"))
    with storage.open_output(str(path)) as file:
        file.write("".join(lines).encode())


def _line(values: Iterable[Any]) -> str:
    return ",".join(map(str, values)) + "\n"
