"""The logs that every run has: lines on the terminal, NVIDIA's dllogger lines, training.csv and
evaluation.csv.
"""

import json
from collections.abc import Collection, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from bertdata.io import storage
from bertdata.io.terminal import format_duration, say_error
from trainer.logs.evaluation_results import EvaluationResults
from trainer.logs.reporter import MEASURES, Logger, Values, flush_log
from trainer.tasks.task import Columns

_LEAST_SHOWN_WAIT = 0.01
"""The terminal shows the share of time spent waiting for data only if it is at least 1 %."""

_NUMBER_FORMATS = {
    "loss": "loss {:.4f}",
    "shown": "{}",
    "learning_rate": "lr {:.2e}",
    "gradient_norm": "gradient norm {:.3f}",
    "sequences_per_second": "{:,.1f} sequences/s",
    "tokens_per_second": "{:,.0f} tokens/s",
    "peak_share": "{:.0%} of peak",
    "memory_gib": "{:.1f} GiB",
    "data_wait_share": "waiting for data {:.0%}",
    "left": "{} left",
}
"""The format of each number of a row on the terminal. The terminal shows the values in the order of this
table.
"""


class Terminal(Logger):
    """Logger that prints a line with numbers and remaining time for each row, a line for each evaluation, and
    a last line.
    """

    def __init__(self, columns: Columns, steps: int, steps_of_update: int = 1) -> None:
        self._steps, self._steps_of_update = steps, steps_of_update
        self._shown = columns.shown

    def row(self, row: Values, time: float) -> None:
        self.say("  ".join([f"step {row['step']}/{self._steps}", *self.format_numbers(row).values()]))

    def evaluation(self, values: Values, text: str, time: float) -> None:
        self.say(f"step {values['step']}: evaluated {values['examples']} examples: {text}")

    def close(self, summary: Values, status: str, time: float) -> None:
        known = {name.removeprefix("training_"): value for name, value in summary.items()}
        words = _format_values(known) | _format_values({"memory_gib": summary.get("peak_memory_gib")})
        self.say(", ".join([f"{status} after {summary['e2e_train_time']:.1f} s", *words.values()]))

    def say(self, line: str) -> None:
        """Print a line. A subclass may print it elsewhere, for example above a progress bar."""
        say_error(line)

    def format_numbers(self, row: Values) -> dict[str, str]:
        """Return the known numbers of a row as text, by name.

        Two names are not fields of the row. "shown" is the metric of the task that is printed next to the
        loss, and "left" is the time until the end of the run.
        """
        shown = f"{self._shown.replace('_', ' ')} {row[self._shown]:.4f}"
        updates = (self._steps - row["step"]) / self._steps_of_update
        left = updates * row.get("seconds_per_update", 0.0)
        return _format_values({**row, "shown": shown, "left": format_duration(left) if left else None})


def _format_values(values: Values) -> dict[str, str]:
    """Return the values of a row that the terminal shows as text, by name. Unknown values are left out."""
    known = {name: values[name] for name in _NUMBER_FORMATS if values.get(name) is not None}
    if known.get("data_wait_share", 0.0) < _LEAST_SHOWN_WAIT:
        known.pop("data_wait_share", None)
    return {name: _NUMBER_FORMATS[name].format(value) for name, value in known.items()}


_DLLOGGER_KEYS = {
    "average_loss": "loss",
    "step_loss": "step_loss",
    "learning_rate": "learning_rate",
    "seconds_per_update": "seconds_per_update",
    "sequences_per_second": "sequences_per_second",
    **{name: name for name in MEASURES},
}
"""For each name in dllogger's lines, the name of the same number in a row. NVIDIA's names come first, then
this trainer's.
"""

_HABANA, _TENSORFLOW = "habana", "tensorflow"


class Dllogger(Logger):
    """Logger that appends lines in the format of NVIDIA's dllogger to a file. A line is ``DLLL`` followed by
    a JSON object.

    form: program whose names the lines use. It is one of the values of the setting json_summary_form.
    resume_step: step after which the run resumes. Lines of later steps are removed. None: a new run.
    """

    def __init__(
        self, path: Path, start: float, form: str = "bertdata", resume_step: int | None = None
    ) -> None:
        self._form, self._workers, self._accumulation = form, 1, 1
        path.parent.mkdir(parents=True, exist_ok=True)
        if resume_step is not None and path.exists():
            from trainer.logs.dllogger_lines import drop_lines_after

            drop_lines_after(path, resume_step)
        self._path = path
        self._file = path.open("a", buffering=1, encoding="utf-8")  # flush after each line
        self._start = start

    def plan(self, values: Values, time: float) -> None:
        self._workers, self._accumulation = values["workers"], values["accumulation"]

    def flush(self) -> None:
        flush_log(self._path)

    def row(self, row: Values, time: float) -> None:
        if self._form == _TENSORFLOW:
            self._write(row["step"], self._format_tensorflow_row(row), time)
            return
        data = {name: row[ours] for name, ours in _DLLOGGER_KEYS.items() if ours in row}
        if self._form == _HABANA:
            data.pop("seconds_per_update", None)
            data.pop("sequences_per_second", None)
            data |= self._compute_habana_speed(row)
        self._write([row["epoch"], row["step"]], data, time)

    def _compute_habana_speed(self, row: Values) -> Values:
        """Return seconds per micro-batch, and sequences per second and card, as Habana's program logs them.

        Both are averages over all updates of the row.
        """
        if not row.get("seconds"):
            return {}
        rate = row["sequences"] / row["seconds"]
        return {
            "average_training_time_step": row["seconds"] / self._accumulation,
            "average_perf_per_step": rate / self._workers,
        }

    @staticmethod
    def _format_tensorflow_row(row: Values) -> Values:
        """Return the numbers that NVIDIA's program for TensorFlow logs, from a row.

        These are the sequences per second of all workers, the losses, and the learning rate as text.
        """
        found: Values = {}
        if row.get("seconds"):
            found["throughput_train"] = row["sequences"] / row["seconds"]
        found |= {name: row[name] for name in ("mlm_loss", "nsp_loss") if name in row}
        return found | {
            "total_loss": row["step_loss"],
            "avg_loss_step": row["loss"],
            "learning_rate": str(row["learning_rate"]),
        }

    def evaluation(self, values: Values, text: str, time: float) -> None:
        self._write([values["step"]], values, time)

    def event(self, name: str, value: Any, time: float) -> None:
        self._write("PARAMETER", {name: value}, time)

    def describe(self, values: Values, time: float) -> None:
        self._write("PARAMETER", values, time)

    def close(self, summary: Values, status: str, time: float) -> None:
        rate = summary.get("training_sequences_per_second")
        if self._form == _TENSORFLOW and rate is not None:
            summary = {"throughput_train": rate, **summary}
        self._write([], summary, time)
        self._file.close()

    def _write(self, step: str | int | list[int], data: Values, time: float) -> None:
        line = {
            "timestamp": str(time),
            "datetime": str(datetime.fromtimestamp(time)),
            "elapsedtime": str(time - self._start),
            "type": "LOG",
            "step": step,
            "data": data,
        }
        self._file.write(f"DLLL {json.dumps(line)}\n")


_BEFORE_METRICS = {"step": "step", "iteration": "step", "epoch": "epoch", "lr": "learning_rate"}
_AFTER_METRICS = {
    "iter_time": "seconds",
    "samples_per_sec": "sequences_per_second",
    "total_time": "total_time",
}
"""For each column that Graphcore's programs have in training.csv, the name of the same number in a row of the
log. The columns of _AFTER_METRICS come after those of the task's metrics, the others before them.
"""


class Tables(Logger):
    """Logger that writes training.csv and evaluation.csv, with the columns of Graphcore's programs first.

    training.csv has this trainer's further columns after Graphcore's. Unknown values are left empty. A
    resumed run appends to its tables. Results of evaluations are also written to eval_results.txt, as by
    Google's trainer.
    """

    def __init__(self, folder: Path, columns: Columns, resume_step: int | None) -> None:
        self._folder = folder
        self._training = {**_BEFORE_METRICS, **columns.training, **_AFTER_METRICS}
        self._training |= {name: name for name in MEASURES}
        self._evaluation = ("step", "trained", "examples", *columns.evaluation)
        _begin_table(folder / "training.csv", self._training, resume_step)
        _begin_table(folder / "evaluation.csv", self._evaluation, resume_step)

    def row(self, row: Values, time: float) -> None:
        self._append("training.csv", [row.get(name, "") for name in self._training.values()])

    def evaluation(self, values: Values, text: str, time: float) -> None:
        EvaluationResults(self._folder).evaluation(values, text, time)
        self._append("evaluation.csv", [values[name] for name in self._evaluation])

    def flush(self) -> None:
        for name in ("training.csv", "evaluation.csv"):
            flush_log(self._folder / name)

    def _append(self, name: str, values: Iterable[Any]) -> None:
        with (self._folder / name).open("a", encoding="utf-8") as file:
            file.write(_format_line(values))


def _begin_table(path: Path, columns: Collection[str], resume_step: int | None) -> None:
    """Create the table with its header. If the run resumes, keep the table's rows up to ``resume_step``
    instead.
    """
    rows: list[dict[str, str]] = []
    if path.exists():
        from trainer.logs.table_rows import keep_rows

        rows = keep_rows(path, resume_step)
    lines = [_format_line(columns), *(_format_line(row.get(name, "") for name in columns) for row in rows)]
    with storage.open_output(str(path)) as file:
        file.write("".join(lines).encode())


def _format_line(values: Iterable[Any]) -> str:
    """Return the values as a line of a CSV table."""
    return ",".join(map(str, values)) + "\n"
