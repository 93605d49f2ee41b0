"""The lines of NVIDIA's dllogger."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from trainer.report.reporter import MEASURES, EvaluationRecord, Logger, Values

_NAMES = {
    "average_loss": "loss",
    "step_loss": "step_loss",
    "learning_rate": "learning_rate",
    "average_training_time_step": "seconds_per_update",
    "average_perf_per_step": "sequences_per_second",
    **{name: name for name in MEASURES},
}
"""The key of a row for each of NVIDIA's names, then for ours."""


class Dllogger(Logger):
    """NVIDIA's dllogger lines, appended: ``DLLL`` and one JSON object."""

    def __init__(self, path: Path, start: float) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", buffering=1, encoding="utf-8")  # flushed after each line
        self._start = start

    def row(self, row: Values, time: float) -> None:
        data = {name: row[ours] for name, ours in _NAMES.items() if ours in row}
        self._write([row["epoch"], row["step"]], data, time)

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        self._write([record.step], record.values(), time)

    def event(self, name: str, value: Any, time: float) -> None:
        self._write("PARAMETER", {name: value}, time)

    def describe(self, values: Values, time: float) -> None:
        self._write("PARAMETER", values, time)

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
