"""The logs of a run: dllogger lines, CSV, eval_results.txt, MLLOG, TensorBoard, Weights & Biases."""

import csv
import json
import logging
import sys
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from bertdata import storage
from bertdata.errors import MissingExtraError, SettingsError
from trainer import curves
from trainer.config import Config
from trainer.errors import naming_extra
from trainer.rows import EvaluationRecord, Row, Sink, Summary

TRAINING_COLUMNS = (
    *("step", "iteration", "epoch", "lr", "mlm_loss", "nsp_loss", "mlm_acc", "nsp_acc"),
    *("iter_time", "samples_per_sec", "total_time"),
)
EVALUATION_COLUMNS = tuple(item.name for item in fields(EvaluationRecord))


class Dllogger(Sink):
    """NVIDIA's dllogger lines, appended: ``DLLL`` and one JSON object."""

    def __init__(self, path: Path, start: float) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8")
        self._start = start

    def row(self, row: Row) -> None:
        data = {
            "average_loss": row.means.loss,
            "step_loss": row.step_loss,
            "learning_rate": row.means.learning_rate,
            "average_training_time_step": row.timing.seconds_per_update,
            "average_perf_per_step": row.timing.sequences_per_second,
        }
        self._write([row.means.epoch, row.means.step], data, row.time)

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        self._write([record.step], _results(record), time)

    def event(self, name: str, value: Any, time: float) -> None:
        self._write("PARAMETER", {name: value}, time)

    def close(self, summary: Summary) -> None:
        data = {
            "e2e_train_time": summary.e2e_seconds,
            "training_sequences_per_second": summary.timing.sequences_per_second,
            "final_loss": summary.final_loss,
            "raw_train_time": summary.raw_seconds,
        }
        self._write([], data, summary.time)
        self._file.close()

    def _write(self, step: str | list[int], data: dict[str, Any], time: float) -> None:
        """One line; what has no value, as the speed of a run too short to time, is left out."""
        line: dict[str, Any] = {"timestamp": str(time), "datetime": str(datetime.fromtimestamp(time))}
        line |= {"elapsedtime": str(time - self._start), "type": "LOG", "step": step}
        line["data"] = {name: value for name, value in data.items() if value is not None}
        self._file.write(f"DLLL {json.dumps(line)}\n")
        self._file.flush()


class Tables(Sink):
    """Graphcore's training.csv, evaluation.csv, and at the end their picture.

    A run that resumes goes on where its rows end.
    """

    def __init__(self, folder: Path, resume_step: int | None) -> None:
        self._folder = folder
        kept = _keep(folder / "training.csv", TRAINING_COLUMNS, resume_step)
        _keep(folder / "evaluation.csv", EVALUATION_COLUMNS, resume_step)
        self._seconds = float(kept[-1]["total_time"]) if kept else 0.0

    def row(self, row: Row) -> None:
        means = row.means
        self._seconds += means.seconds
        values = (
            *(means.step, means.step, means.epoch, means.learning_rate, means.mlm_loss, means.nsp_loss),
            *(means.mlm_accuracy, means.nsp_accuracy, means.seconds / means.updates),
            *(row.timing.sequences_per_second, self._seconds),
        )
        self._append("training.csv", values)

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        self._append("evaluation.csv", asdict(record).values())

    def close(self, summary: Summary) -> None:
        try:
            curves.draw_curves(self._folder)
        except MissingExtraError as error:
            print(f"no picture of the curves: {error}", file=sys.stderr, flush=True)

    def _append(self, name: str, values: Iterable[Any]) -> None:
        with (self._folder / name).open("a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerow(values)


def _keep(path: Path, columns: tuple[str, ...], resume_step: int | None) -> list[dict[str, str]]:
    """Begin the table, or cut it after the resumed step; the rows kept. An older run's table is set aside."""
    rows: list[dict[str, str]] = []
    if path.exists() and resume_step is None:
        number = 1 + len(list(path.parent.glob(f"{path.stem}.*{path.suffix}")))
        path.rename(path.with_name(f"{path.stem}.{number}{path.suffix}"))
    elif path.exists():
        rows = [row for row in curves.read_table(path) if int(row["step"]) <= (resume_step or 0)]
    lines = [columns, *([row[name] for name in columns] for row in rows)]
    with storage.open_output(str(path)) as file:
        file.write("".join(f"{','.join(line)}\n" for line in lines).encode())
    return rows


class EvaluationResults(Sink):
    """The last evaluation as ``key = value`` lines, in the file that Google's trainer writes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "eval_results.txt"

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        lines = [f"{name} = {value}\n" for name, value in sorted(_results(record).items())]
        with storage.open_output(str(self._path)) as file:
            file.write("".join(lines).encode())


def _results(record: EvaluationRecord) -> dict[str, Any]:
    results = asdict(record)
    del results["trained"]
    return {"global_step": results.pop("step")} | results


class Mllog(Sink):
    """MLPerf's events, appended, by the package mlperf-logging; samples are counted as ``epoch_num``."""

    def __init__(self, path: Path) -> None:
        with naming_extra("mlperf-logging", "mllog"):
            from mlperf_logging.mllog import mllog
        self._lines = logging.Logger(f"mllog {path}", logging.INFO)  # of its own: in no tree of loggers
        self._lines.addHandler(logging.FileHandler(path, encoding="utf-8"))
        self._mllog = mllog.MLLogger(self._lines)
        self._trained = 0

    def row(self, row: Row) -> None:
        self._trained += row.means.sequences

    def event(self, name: str, value: Any, time: float) -> None:
        side = name.rpartition("_")[2]
        write = {"start": self._mllog.start, "stop": self._mllog.end}.get(side)
        if write is None:
            self._mllog.event(key=name, value=value, time_ms=int(time * 1000))
        else:
            metadata = {"status": value} if name == "run_stop" else {"epoch_num": self._trained}
            write(key=name, value=None, metadata=metadata, time_ms=int(time * 1000))

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        self._trained = record.trained
        accuracy, metadata = record.masked_lm_accuracy, {"epoch_num": record.trained}
        self._mllog.event(key="eval_accuracy", value=accuracy, metadata=metadata, time_ms=int(time * 1000))

    def close(self, summary: Summary) -> None:
        for handler in self._lines.handlers:
            handler.close()


class Curves(Sink):
    """Numbers over updates, by the names that they have in TensorBoard and Weights & Biases."""

    def row(self, row: Row) -> None:
        names = ("loss", "mlm_loss", "nsp_loss", "mlm_accuracy", "nsp_accuracy", "learning_rate")
        values = {f"train/{name}": getattr(row.means, name) for name in names}
        if (speed := row.timing.sequences_per_second) is not None:
            values["train/sequences_per_second"] = speed
        self.add(values, row.means.step, row.time)

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        values = {f"eval/{name}": value for name, value in _results(record).items() if name != "global_step"}
        self.add(values, record.step, time)

    @abstractmethod
    def add(self, values: dict[str, float], step: int, time: float) -> None:
        """One point of each curve."""


class TensorBoard(Curves):
    """Scalars in TensorBoard's event files."""

    def __init__(self, folder: Path, resume_step: int | None) -> None:
        with naming_extra("tensorboard", "tensorboard"):
            from torch.utils.tensorboard import SummaryWriter
        purge = None if resume_step is None else resume_step + 1
        self._writer: Any = SummaryWriter(str(folder), purge_step=purge)

    def add(self, values: dict[str, float], step: int, time: float) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step, walltime=time)

    def close(self, summary: Summary) -> None:
        self._writer.close()


class WeightsAndBiases(Curves):
    """A run of Weights & Biases; a resumed run goes on under the same id, kept in wandb_id.txt."""

    def __init__(self, folder: Path, config: Config, resume_step: int | None) -> None:
        with naming_extra("wandb", "wandb"):
            import wandb
        place = folder / "wandb_id.txt"
        if resume_step is None or not place.exists():
            place.write_text(uuid4().hex[:8], encoding="utf-8")
        try:
            self._run: Any = wandb.init(
                project=config.wandb_project,
                dir=str(folder),
                id=place.read_text(encoding="utf-8"),
                mode="offline" if config.wandb_offline else "online",
                resume=None if config.wandb_offline else "allow",
                config=config.as_json(),
                settings=wandb.Settings(console="off", silent=True),
            )
        except wandb.errors.Error as error:
            raise SettingsError(f"wandb: {error}; --wandb-offline needs neither key nor network") from None

    def add(self, values: dict[str, float], step: int, time: float) -> None:
        self._run.log(values, step=step)

    def close(self, summary: Summary) -> None:
        self._run.finish(exit_code=0 if summary.status == "success" else 1)
