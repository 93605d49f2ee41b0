"""Reading of logs in other programs' formats. Columns get the names that this trainer uses.

The formats are NVIDIA's dllogger lines, which this trainer writes too, and Hugging Face's trainer_state.json.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.json_text import parse_json_text
from schemas.faults import faults

DLLOGGER, TRAINER_STATE = "dllogger.json", "trainer_state.json"
_PREFIX = "DLLL "
_OF_DLLOGGER = {
    "average_loss": "loss",
    "step_loss": "step_loss",
    "learning_rate": "lr",
    "average_training_time_step": "iter_time",
    "average_perf_per_step": "samples_per_sec",
    "seconds_per_update": "iter_time",
    "sequences_per_second": "samples_per_sec",
    "throughput_train": "samples_per_sec",
    "avg_loss_step": "loss",
    "total_loss": "step_loss",
}
_OF_TRAINER = {"loss": "loss", "learning_rate": "lr", "grad_norm": "gradient_norm", "epoch": "epoch"}
_TRAINER_STATE: Mapping[str, Any] = {
    "type": "object",
    "required": ["log_history"],
    "properties": {
        "log_history": {
            "type": "array",
            "items": {"type": "object", "required": ["step"], "properties": {"step": {"type": "number"}}},
        }
    },
}
_RATES = ("runtime", "samples_per_second", "steps_per_second")

_MOST_SECONDS = 1e12
"""Largest time since 1970 that a line may have, in seconds. It is in the year 33,658."""

LARGEST_STEP = 1 << 53
"""Largest number of an update that is accepted in a log. A larger number means that the log is damaged."""


@dataclass(kw_only=True, slots=True)
class LoggedRun:
    """The rows of a log, and what else it says about the run.

    starts: facts that each process of the run logged when it started (device, workers and so on), in order.
    events: the last value of each other event, by the event's name.
    seconds: time from the first to the last line, including pauses.
    """

    training: list[dict[str, float]] = field(default_factory=list)
    evaluations: list[dict[str, float]] = field(default_factory=list)
    starts: list[Mapping[str, Any]] = field(default_factory=list)
    events: dict[str, Any] = field(default_factory=dict)
    seconds: float | None = None


def read_dllogger(path: str) -> LoggedRun:
    """Read a file of NVIDIA's dllogger. Incomplete lines and lines of other programs are skipped."""
    found = LoggedRun()
    times: list[float] = []
    lines = storage.read_bytes(path).decode(errors="replace").split("\n")
    for number, line in enumerate(lines, 1):
        if (record := _parse_record(line)) is None:
            continue
        with suppress(KeyError, TypeError, ValueError):
            seconds = float(record["timestamp"])
            if abs(seconds) < _MOST_SECONDS:  # not NaN, whose comparison is false
                times.append(seconds)
        step, data = record.get("step"), record["data"]
        if step == "PARAMETER" and "start_point" in data:
            found.starts.append(data)
        elif step == "PARAMETER":
            found.events |= data
        # NVIDIA's program for TensorFlow writes lines whose step is a single number
        elif isinstance(step, int) and not isinstance(step, bool):
            check_step(step, f"{path}: line {number}")
            numbers = {_OF_DLLOGGER.get(name, name): value for name, value in _select_numbers(data).items()}
            found.training.append({"step": step} | numbers | {"step": step})
        elif isinstance(step, list) and step and all(isinstance(one, int) for one in step):
            numbers = {_OF_DLLOGGER.get(name, name): value for name, value in _select_numbers(data).items()}
            rows = found.evaluations if len(step) == 1 else found.training
            check_step(step[-1], f"{path}: line {number}")
            rows.append({"step": step[-1]} | numbers | {"step": step[-1]})
    found.training, found.evaluations = _keep_last_rows(found.training), _keep_last_rows(found.evaluations)
    found.seconds = max(times) - min(times) if times else None
    return found


def read_trainer_state(path: str) -> LoggedRun:
    """Read the log of Hugging Face's Trainer, which each of its checkpoints contains."""
    try:
        state = parse_json_text(storage.read_bytes(path), any_number=True)
    except ValueError as error:
        raise InputError(f"{path}: is not JSON: {error}") from None
    if any(faults(state, _TRAINER_STATE)):
        raise InputError(f"{path}: has no log_history with steps; expected the Trainer's JSON")
    found = LoggedRun()
    for number, row in enumerate(state["log_history"]):
        step = row["step"]
        check_step(step, f"{path}: log_history, entry {number}")
        results = {name[5:]: value for name, value in row.items() if name.startswith("eval_")}
        if results:
            kept = {name: value for name, value in results.items() if name not in _RATES}
            found.evaluations.append({"step": step} | _select_numbers(kept) | {"step": step})
        elif "loss" in row:
            numbers = {
                _OF_TRAINER[name]: value
                for name, value in _select_numbers(row).items()
                if name in _OF_TRAINER
            }
            found.training.append({"step": step, **numbers})
    return found


FOREIGN_LOGS: Mapping[str, Callable[[str], LoggedRun]] = {
    DLLOGGER: read_dllogger,
    TRAINER_STATE: read_trainer_state,
}
"""For each file name of a log in another program's format, the function that reads the log."""


def check_step(step: float, where: str) -> None:
    """Raise InputError if ``step`` cannot be the number of an update: negative, a fraction, not a number or
    too large.

    where: file and line, for the message.
    """
    if not (math.isfinite(step) and step == int(step) and 0 <= step <= LARGEST_STEP):
        raise InputError(f"{where}: step is {step}, expected the number of an update")


def _parse_record(line: str) -> dict[str, Any] | None:
    """Return the JSON object of a dllogger line, or None for a line that another program wrote."""
    if not line.startswith(_PREFIX):
        return None
    try:
        record = parse_json_text(line[len(_PREFIX) :], any_number=True)
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("data"), dict) else None


def _select_numbers(data: Mapping[str, Any]) -> dict[str, float]:
    """Return the values that are numbers, as floats. Texts, lists and booleans are left out."""
    return {
        name: float(value)
        for name, value in data.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _keep_last_rows(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    """Return the last row of each step, in ascending order. A resumed run may have logged some steps
    twice.
    """
    return [row for _, row in sorted({row["step"]: row for row in rows}.items())]
