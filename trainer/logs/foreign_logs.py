"""Logs of other programs as rows under our names: dllogger's, which our runs have too, and the Trainer's."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bertdata.errors import InputError
from bertdata.io import storage

DLLOGGER, TRAINER_STATE = "dllogger.json", "trainer_state.json"
_PREFIX = "DLLL "
_OF_DLLOGGER = {
    "average_loss": "loss",
    "step_loss": "step_loss",
    "learning_rate": "lr",
    "average_training_time_step": "iter_time",
    "average_perf_per_step": "samples_per_sec",
}
_OF_TRAINER = {"loss": "loss", "learning_rate": "lr", "grad_norm": "gradient_norm", "epoch": "epoch"}
_RATES = ("runtime", "samples_per_second", "steps_per_second")


@dataclass(kw_only=True, slots=True)
class LoggedRun:
    """The rows of a log, and what a run tells there.

    starts: what each process of the run told of itself, in order. events: its other events by name, the last
    of each. seconds: from the first to the last line, pauses included.
    """

    training: list[dict[str, float]] = field(default_factory=list)
    evaluations: list[dict[str, float]] = field(default_factory=list)
    starts: list[Mapping[str, Any]] = field(default_factory=list)
    events: dict[str, Any] = field(default_factory=dict)
    seconds: float | None = None


def read_dllogger(path: str) -> LoggedRun:
    """The lines of NVIDIA's dllogger. A line that a crash cut off is left out, as are those of others."""
    found = LoggedRun()
    times: list[float] = []
    lines = storage.read_bytes(path).decode(errors="replace").splitlines()
    for record in filter(None, map(_record, lines)):
        with suppress(KeyError, TypeError, ValueError):
            times.append(float(record["timestamp"]))
        step, data = record.get("step"), record["data"]
        if step == "PARAMETER" and "start_point" in data:
            found.starts.append(data)
        elif step == "PARAMETER":
            found.events |= data
        elif isinstance(step, list) and step and all(isinstance(one, int) for one in step):
            numbers = {_OF_DLLOGGER.get(name, name): value for name, value in _numbers(data).items()}
            rows = found.evaluations if len(step) == 1 else found.training
            rows.append({"step": step[-1], **numbers})
    found.training, found.evaluations = _by_step(found.training), _by_step(found.evaluations)
    found.seconds = max(times) - min(times) if times else None
    return found


def read_trainer_state(path: str) -> LoggedRun:
    """The log of Hugging Face's Trainer, which each of its checkpoints has."""
    try:
        history = json.loads(storage.read_bytes(path))["log_history"]
        rows = [(row["step"], row) for row in history]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: has no log_history with steps; expected the Trainer's JSON") from None
    found = LoggedRun()
    for step, row in rows:
        results = {name[5:]: value for name, value in row.items() if name.startswith("eval_")}
        if results:
            kept = {name: value for name, value in results.items() if name not in _RATES}
            found.evaluations.append({"step": step, **_numbers(kept)})
        elif "loss" in row:
            numbers = {
                _OF_TRAINER[name]: value for name, value in _numbers(row).items() if name in _OF_TRAINER
            }
            found.training.append({"step": step, **numbers})
    return found


FOREIGN_LOGS: Mapping[str, Callable[[str], LoggedRun]] = {
    DLLOGGER: read_dllogger,
    TRAINER_STATE: read_trainer_state,
}
"""The reader of each log by the file's name."""


def _record(line: str) -> dict[str, Any] | None:
    if not line.startswith(_PREFIX):
        return None
    try:
        record = json.loads(line[len(_PREFIX) :])
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("data"), dict) else None


def _numbers(data: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in data.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _by_step(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    """The last row of each step, in order: a resumed run makes updates again."""
    return [row for _, row in sorted({row["step"]: row for row in rows}.items())]
