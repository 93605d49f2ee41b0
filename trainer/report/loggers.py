"""The logs of a run: dllogger lines, CSV, eval_results.txt, MLLOG, TensorBoard, Weights & Biases."""

import json
import logging
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from bertdata.errors import MissingExtraError, SettingsError
from bertdata.io import storage
from bertdata.io.terminal import say_error
from trainer.config.settings import Config
from trainer.errors import naming_extra
from trainer.report import curves
from trainer.report.columns import Columns
from trainer.report.log_records import EvaluationRecord, Logger, Values

_BEFORE_METRICS = {"step": "step", "iteration": "step", "epoch": "epoch", "lr": "learning_rate"}
_AFTER_METRICS = {
    "iter_time": "seconds",
    "samples_per_sec": "sequences_per_second",
    "total_time": "total_time",
}
"""The key of a row for each column of training.csv, before and after those of the task's metrics."""

DLLOGGER_NAMES = {
    "average_loss": "loss",
    "step_loss": "step_loss",
    "learning_rate": "learning_rate",
    "average_training_time_step": "seconds_per_update",
    "average_perf_per_step": "sequences_per_second",
}
"""The key of a row for each of NVIDIA's names."""

_BEFORE_RESULTS = ("step", "trained", "examples")
"""The columns of evaluation.csv before the task's results."""


class Dllogger(Logger):
    """NVIDIA's dllogger lines, appended: ``DLLL`` and one JSON object."""

    def __init__(self, path: Path, start: float) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", buffering=1, encoding="utf-8")  # flushed after each line
        self._start = start

    def row(self, row: Values, time: float) -> None:
        data = {name: row[ours] for name, ours in DLLOGGER_NAMES.items() if ours in row}
        self._write([row["epoch"], row["step"]], data, time)

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        self._write([record.step], record.values(), time)

    def event(self, name: str, value: Any, time: float) -> None:
        self._write("PARAMETER", {name: value}, time)

    def close(self, summary: Values, status: str, time: float) -> None:
        self._write([], summary, time)
        self._file.close()

    def _write(self, step: str | list[int], data: Values, time: float) -> None:
        line = {
            "timestamp": str(time),
            "datetime": str(datetime.fromtimestamp(time)),
            "elapsedtime": str(time - self._start),
            "type": "LOG",
            "step": step,
            "data": data,
        }
        self._file.write(f"DLLL {json.dumps(line)}\n")


class Tables(Logger):
    """Graphcore's training.csv and evaluation.csv, and at the end a picture of both.

    A resumed run appends to its tables.
    """

    def __init__(self, folder: Path, columns: Columns, resume_step: int | None) -> None:
        self._folder = folder
        self._columns = columns
        self._training = {**_BEFORE_METRICS, **columns.training, **_AFTER_METRICS}
        self._evaluation = (*_BEFORE_RESULTS, *columns.evaluation)
        _begin_table(folder / "training.csv", self._training, resume_step)
        _begin_table(folder / "evaluation.csv", self._evaluation, resume_step)

    def row(self, row: Values, time: float) -> None:
        self._append("training.csv", [row.get(name, "") for name in self._training.values()])

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        values = record.values()
        self._append("evaluation.csv", [values[name] for name in self._evaluation])

    def close(self, summary: Values, status: str, time: float) -> None:
        if status != "success":
            return  # after the loss of a worker only seconds are left
        try:
            curves.draw_curves(self._folder, self._columns)
        except MissingExtraError as error:
            say_error(f"no picture of the curves: {error}")

    def _append(self, name: str, values: Iterable[Any]) -> None:
        with (self._folder / name).open("a", encoding="utf-8") as file:
            file.write(_line(values))


def _begin_table(path: Path, columns: Iterable[str], resume_step: int | None) -> None:
    """Begin the table, or cut it after the resumed step; an earlier phase's table is renamed."""
    lines = [_line(columns)]
    if path.exists() and resume_step is not None:
        rows = curves.read_table(path)
        lines += [_line(row.values()) for row in rows if int(row["step"]) <= resume_step]
    elif path.exists():
        number = len(list(path.parent.glob(f"{path.stem}*.csv")))
        path.rename(path.with_suffix(f".{number}.csv"))
    with storage.open_output(str(path)) as file:
        file.write("".join(lines).encode())


def _line(values: Iterable[Any]) -> str:
    return ",".join(map(str, values)) + "\n"


class EvaluationResults(Logger):
    """The last evaluation as ``key = value`` lines, in the file that Google's trainer writes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "eval_results.txt"

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        values = record.values().items()
        named = {"global_step" if name == "step" else name: value for name, value in values}
        lines = [f"{name} = {value}\n" for name, value in sorted(named.items()) if name != "trained"]
        with storage.open_output(str(self._path)) as file:
            file.write("".join(lines).encode())


class Mllog(Logger):
    """MLPerf's events, appended by the package mlperf-logging; ``epoch_num`` is the number of examples."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self._target = columns.target
        with naming_extra("mlperf-logging", "mllog"):
            from mlperf_logging.mllog import mllog
        self._file = logging.FileHandler(path, encoding="utf-8")
        logger = logging.Logger(f"mllog {path}", logging.INFO)  # not registered with the root logger
        logger.addHandler(self._file)
        self._mllog = mllog.MLLogger(logger)

    def event(self, name: str, value: Any, time: float, **metadata: Any) -> None:
        write = {"start": self._mllog.start, "stop": self._mllog.end}.get(name.rpartition("_")[2])
        metadata = {"status": value} if name == "run_stop" else metadata
        more = {"value": None if write else value, "metadata": metadata, "time_ms": int(time * 1000)}
        (write or self._mllog.event)(key=name, **more)

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        self.event("eval_accuracy", record.results[self._target], time, epoch_num=record.trained)

    def close(self, summary: Values, status: str, time: float) -> None:
        self._file.close()


class ScalarLogger(Logger):
    """Base of TensorBoard and Weights & Biases: one scalar for each key, named KIND/KEY."""

    def row(self, row: Values, time: float) -> None:
        self.add("train", row, time)

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        self.add("eval", record.values(), time)

    def add(self, kind: str, values: Values, time: float) -> None:
        """Write one value of each scalar; kind is "train" or "eval"."""


class TensorBoard(ScalarLogger):
    """Scalars in TensorBoard's event files."""

    def __init__(self, folder: Path, resume_step: int | None) -> None:
        with naming_extra("tensorboard", "tensorboard"):
            from torch.utils.tensorboard import SummaryWriter
        purge_step = None if resume_step is None else resume_step + 1
        self._writer: Any = SummaryWriter(str(folder), purge_step=purge_step)

    def add(self, kind: str, values: Values, time: float) -> None:
        for name, value in values.items():
            self._writer.add_scalar(f"{kind}/{name}", value, values["step"], walltime=time)

    def close(self, summary: Values, status: str, time: float) -> None:
        self._writer.close()


class WeightsAndBiases(ScalarLogger):
    """A run of Weights & Biases; a resumed run is another run in the same group, the output directory."""

    def __init__(self, folder: Path, config: Config) -> None:
        with naming_extra("wandb", "wandb"):
            import wandb
        try:
            self._run: Any = wandb.init(
                dir=str(folder),
                project=config.reports.wandb_project,
                config=config.as_json(),
                mode="offline" if config.reports.wandb_offline else "online",
                group=str(folder),
                settings=wandb.Settings(console="off", silent=True),
            )
        except wandb.errors.Error as error:
            raise SettingsError(f"wandb: {error}; --wandb-offline needs neither key nor network") from None

    def add(self, kind: str, values: Values, time: float) -> None:
        self._run.log({f"{kind}/{name}": value for name, value in values.items()}, step=values["step"])

    def close(self, summary: Values, status: str, time: float) -> None:
        self._run.finish(exit_code=0 if status == "success" else 1)
