"""The logs of a run: dllogger lines, CSV, eval_results.txt, MLLOG, TensorBoard, Weights & Biases."""

import json
import logging
import sys
from collections.abc import Iterable
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

from bertdata.errors import MissingExtraError, SettingsError
from bertdata.io import storage
from trainer import curves
from trainer.config import Config
from trainer.errors import naming_extra
from trainer.rows import EvaluationRecord, Sink, Values

# Names in the logs, and what a row of ours calls the same.
TRAINING_COLUMNS = {
    **{"step": "step", "iteration": "step", "epoch": "epoch", "lr": "learning_rate"},
    **{"mlm_loss": "mlm_loss", "nsp_loss": "nsp_loss", "mlm_acc": "mlm_accuracy", "nsp_acc": "nsp_accuracy"},
    **{"iter_time": "seconds", "samples_per_sec": "sequences_per_second", "total_time": "total_time"},
}
DLLOGGER_NAMES = {
    **{"average_loss": "loss", "step_loss": "step_loss", "learning_rate": "learning_rate"},
    **{"average_training_time_step": "seconds_per_update", "average_perf_per_step": "sequences_per_second"},
}
EVALUATION_COLUMNS = {item.name: item.name for item in fields(EvaluationRecord)}


class Dllogger(Sink):
    """NVIDIA's dllogger lines, appended: ``DLLL`` and one JSON object."""

    def __init__(self, path: Path, start: float) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", buffering=1, encoding="utf-8")  # a line is there when it is written
        self._start = start

    def row(self, row: Values, time: float) -> None:
        data = {name: row[ours] for name, ours in DLLOGGER_NAMES.items() if ours in row}
        self._write([row["epoch"], row["step"]], data, time)

    def evaluation(self, results: Values, time: float) -> None:
        self._write([results["step"]], results, time)

    def event(self, name: str, value: Any, time: float) -> None:
        self._write("PARAMETER", {name: value}, time)

    def close(self, summary: Values, status: str, time: float) -> None:
        self._write([], summary, time)
        self._file.close()

    def _write(self, step: str | list[int], data: Values, time: float) -> None:
        line: dict[str, Any] = {"timestamp": str(time), "datetime": str(datetime.fromtimestamp(time))}
        line |= {"elapsedtime": str(time - self._start), "type": "LOG", "step": step, "data": data}
        self._file.write(f"DLLL {json.dumps(line)}\n")


class Tables(Sink):
    """Graphcore's training.csv, evaluation.csv, and at the end their picture.

    A run that resumes goes on where its rows end.
    """

    def __init__(self, folder: Path, resume_step: int | None) -> None:
        self._folder = folder
        _keep(folder / "training.csv", TRAINING_COLUMNS, resume_step)
        _keep(folder / "evaluation.csv", EVALUATION_COLUMNS, resume_step)

    def row(self, row: Values, time: float) -> None:
        self._append("training.csv", [row.get(name, "") for name in TRAINING_COLUMNS.values()])

    def evaluation(self, results: Values, time: float) -> None:
        self._append("evaluation.csv", results.values())

    def close(self, summary: Values, status: str, time: float) -> None:
        if status != "success":
            return  # a worker that ends for another's loss has seconds left to say so
        try:
            curves.draw_curves(self._folder)
        except MissingExtraError as error:
            print(f"no picture of the curves: {error}", file=sys.stderr, flush=True)

    def _append(self, name: str, values: Iterable[Any]) -> None:
        with (self._folder / name).open("a", encoding="utf-8") as file:
            file.write(_line(values))


def _keep(path: Path, columns: Iterable[str], resume_step: int | None) -> None:
    """Begin the table, or cut it after the resumed step. An earlier phase's is set aside."""
    lines = [_line(columns)]
    if path.exists() and resume_step is not None:
        rows = curves.read_table(path)
        lines += [_line(row.values()) for row in rows if int(row["step"]) <= resume_step]
    elif path.exists():
        path.rename(path.with_suffix(f".{len(list(path.parent.glob(f'{path.stem}*.csv')))}.csv"))
    with storage.open_output(str(path)) as file:
        file.write("".join(lines).encode())


def _line(values: Iterable[Any]) -> str:
    return ",".join(map(str, values)) + "\n"


class EvaluationResults(Sink):
    """The last evaluation as ``key = value`` lines, in the file that Google's trainer writes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "eval_results.txt"

    def evaluation(self, results: Values, time: float) -> None:
        named = {"global_step" if name == "step" else name: value for name, value in results.items()}
        lines = [f"{name} = {value}\n" for name, value in sorted(named.items()) if name != "trained"]
        with storage.open_output(str(self._path)) as file:
            file.write("".join(lines).encode())


class Mllog(Sink):
    """MLPerf's events, appended, by the package mlperf-logging; samples are counted as ``epoch_num``."""

    def __init__(self, path: Path) -> None:
        with naming_extra("mlperf-logging", "mllog"):
            from mlperf_logging.mllog import mllog
        self._file = logging.FileHandler(path, encoding="utf-8")
        lines = logging.Logger(f"mllog {path}", logging.INFO)  # of its own: in no tree of loggers
        lines.addHandler(self._file)
        self._mllog = mllog.MLLogger(lines)

    def event(self, name: str, value: Any, time: float, **metadata: Any) -> None:
        write = {"start": self._mllog.start, "stop": self._mllog.end}.get(name.rpartition("_")[2])
        metadata = {"status": value} if name == "run_stop" else metadata
        more = {"value": None if write else value, "metadata": metadata, "time_ms": int(time * 1000)}
        (write or self._mllog.event)(key=name, **more)

    def evaluation(self, results: Values, time: float) -> None:
        self.event("eval_accuracy", results["masked_lm_accuracy"], time, epoch_num=results["trained"])

    def close(self, summary: Values, status: str, time: float) -> None:
        self._file.close()


class Curves(Sink):
    """Numbers over updates, by the names that they have in TensorBoard and Weights & Biases."""

    def row(self, row: Values, time: float) -> None:
        self.add("train", row, time)

    def evaluation(self, results: Values, time: float) -> None:
        self.add("eval", results, time)

    def add(self, kind: str, values: Values, time: float) -> None:
        """One point of each curve."""


class TensorBoard(Curves):
    """Scalars in TensorBoard's event files."""

    def __init__(self, folder: Path, resume_step: int | None) -> None:
        with naming_extra("tensorboard", "tensorboard"):
            from torch.utils.tensorboard import SummaryWriter
        beyond = None if resume_step is None else resume_step + 1
        self._writer: Any = SummaryWriter(str(folder), purge_step=beyond)

    def add(self, kind: str, values: Values, time: float) -> None:
        for name, value in values.items():
            self._writer.add_scalar(f"{kind}/{name}", value, values["step"], walltime=time)

    def close(self, summary: Values, status: str, time: float) -> None:
        self._writer.close()


class WeightsAndBiases(Curves):
    """A run of Weights & Biases; one that resumes is another run of the same group, the directory."""

    def __init__(self, folder: Path, config: Config) -> None:
        with naming_extra("wandb", "wandb"):
            import wandb
        run: dict[str, Any] = {"dir": str(folder), "project": config.wandb_project}
        run |= {"config": config.as_json(), "mode": "offline" if config.wandb_offline else "online"}
        run |= {"group": str(folder), "settings": wandb.Settings(console="off", silent=True)}
        try:
            self._run: Any = wandb.init(**run)
        except wandb.errors.Error as error:
            raise SettingsError(f"wandb: {error}; --wandb-offline needs neither key nor network") from None

    def add(self, kind: str, values: Values, time: float) -> None:
        self._run.log({f"{kind}/{name}": value for name, value in values.items()}, step=values["step"])

    def close(self, summary: Values, status: str, time: float) -> None:
        self._run.finish(exit_code=0 if status == "success" else 1)
