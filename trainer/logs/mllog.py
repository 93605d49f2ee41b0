"""MLPerf's events."""

import logging
from pathlib import Path
from typing import Any

from trainer.errors import naming_extra
from trainer.logs.reporter import Logger, Values
from trainer.tasks.task import Columns


class Mllog(Logger):
    """MLPerf's events, appended by the package mlperf-logging. ``epoch_num`` is the number of examples."""

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

    def evaluation(self, values: Values, text: str, time: float) -> None:
        self.event("eval_accuracy", values[self._target], time, epoch_num=values["trained"])

    def close(self, summary: Values, status: str, time: float) -> None:
        self._file.close()
