"""A run as its directory tells it: rows of its tables, lines of its log, settings of its last checkpoint."""

import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bertdata.errors import BertDataError, InputError, MissingInputError
from bertdata.io import storage
from bertdata.io.json_text import read_json
from schemas.faults import faults
from trainer.logs.foreign_logs import DLLOGGER, FOREIGN_LOGS, LoggedRun, check_step, read_dllogger
from trainer.logs.table_rows import read_table

TRAINING = "training.csv"

_STATE: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "phase": {"type": "integer"},
        "task": {"type": ["string", "null"]},
        "config": {"type": "object"},
        "versions": {"type": "array", "items": {"type": "string"}},
        "model": {
            "type": "object",
            "properties": {
                name: {"type": "integer"}
                for name in ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")
            },
        },
    },
}
"""JSON Schema of what a page tells of a checkpoint's state. The state of any version fits it."""

Row = Mapping[str, float]
"""The numbers of a row by column; a column without a number is left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedPhase:
    """The rows of a phase. offset: the updates of the phases before it. name: empty for a run of one.

    run: the run's name where there are several, else empty. series: number of its colour in charts.
    """

    name: str = ""
    offset: int = 0
    training: Sequence[Row]
    evaluations: Sequence[Row]
    run: str = ""
    series: int = 0

    def label(self, kind: str = "") -> str:
        """The phase's name among those of the runs, and the kind of a line. Empty where it needs none."""
        return ", ".join(filter(None, (self.run, self.name, kind)))

    @property
    def span(self) -> list[float]:
        """The first and the last update that is reported, counted over all phases."""
        steps = [row["step"] + self.offset for row in (*self.training, *self.evaluations)]
        return [min(steps), max(steps)] if steps else []

    def points(
        self, rows: Sequence[Row], column: str, factor: float = 1.0
    ) -> tuple[list[float], list[float]]:
        """The updates, counted over all phases, and the finite values of a column times the factor."""
        found = [(row["step"] + self.offset, row.get(column, math.nan) * factor) for row in rows]
        finite = [(x, y) for x, y in found if math.isfinite(y)]
        return [x for x, _ in finite], [y for _, y in finite]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedRun:
    """A run. state: the JSON of its last checkpoint, empty where there is none. log: its dllogger.json.

    name: the run's among those that it is shown with.
    """

    path: str
    phases: Sequence[RecordedPhase]
    state: Mapping[str, Any] = field(default_factory=dict)
    log: LoggedRun = field(default_factory=LoggedRun)
    name: str = ""

    @property
    def config(self) -> Mapping[str, Any]:
        config: Mapping[str, Any] = self.state.get("config", {})
        return config

    @property
    def updates(self) -> int:
        """The last update that is reported, counted over all phases."""
        return int(max((phase.span[1] for phase in self.phases if phase.span), default=0))


def columns_of(runs: Sequence[RecordedRun], table: str) -> list[str]:
    """The columns in which a run has a number, in their order. table: training or evaluations."""
    rows = (row for run in runs for phase in run.phases for row in getattr(phase, table))
    return list(dict.fromkeys(name for row in rows for name in row))


def read_runs(paths: Sequence[str]) -> list[RecordedRun]:
    """The runs, each with a name and colours of its own, as of ``read_run``."""
    runs = [read_run(path) for path in paths]
    named = []
    for place, (run, name) in enumerate(zip(runs, short_names([run.path for run in runs]), strict=True)):
        phases = [
            replace(phase, run=name, series=place) if len(runs) > 1 else replace(phase, series=2 * number)
            for number, phase in enumerate(run.phases)
        ]
        named.append(replace(run, name=name, phases=phases))
    return named


def short_names(paths: Sequence[str]) -> list[str]:
    """The last part of each path, with those before it where two are alike."""
    parts = [Path(os.path.normpath(path)).parts for path in paths]
    for length in range(1, max(len(one) for one in parts) + 1):
        names = ["/".join(one[-length:]) for one in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{path} ({number})" for number, path in enumerate(paths, 1)]


def read_run(path: str) -> RecordedRun:
    """The run in a directory, or that of another program's log. InputError where nothing tells of one."""
    path = path.removeprefix("file://")
    if not storage.is_directory(path):
        if not storage.exists(path):
            raise MissingInputError(f"{path}: no such directory")
        return _of_log(path, path)
    folder = Path(path)
    log = folder / DLLOGGER
    if (folder / TRAINING).exists():
        state = _last_state(folder)
        told = read_dllogger(str(log)) if log.exists() else LoggedRun()
        return RecordedRun(path=path, phases=_phases(folder, state), state=state, log=told)
    for name in FOREIGN_LOGS:
        if (folder / name).exists():
            return _of_log(str(folder / name), path)
    raise InputError(
        f"{path}: holds no {TRAINING}, {' or '.join(FOREIGN_LOGS)}: give the "
        "--output-dir of a run that has made an update"
    )


def _of_log(log: str, path: str) -> RecordedRun:
    """The run that another program's log tells of."""
    found = FOREIGN_LOGS.get(storage.base_name(log), read_dllogger)(log)
    if not found.training and not found.evaluations:
        raise InputError(f"{log}: tells of no update")
    phase = RecordedPhase(training=found.training, evaluations=found.evaluations)
    return RecordedRun(path=path, phases=[phase], log=found)


def _phases(folder: Path, state: Mapping[str, Any]) -> list[RecordedPhase]:
    """The phases by the tables, of which earlier ones have a number. A run that began anew is one phase."""
    tables = [folder / TRAINING]
    if state.get("phase", 1) > 1:
        tables = [*_earlier(folder), *tables]
    phases: list[RecordedPhase] = []
    offset = 0
    for number, table in enumerate(tables, 1):
        name = f"phase {number}" if len(tables) > 1 else ""
        evaluations = table.with_name(table.name.replace("training", "evaluation"))
        evaluated = _rows(evaluations) if evaluations.exists() else []
        training = _rows(table)
        phases.append(RecordedPhase(name=name, offset=offset, training=training, evaluations=evaluated))
        offset += int(max((row["step"] for row in training), default=0))
    return phases


def _earlier(folder: Path) -> list[Path]:
    """The tables of earlier phases, in order: training.1.csv, training.2.csv."""
    names = [re.fullmatch(r"training\.(\d+)\.csv", path.name) for path in folder.iterdir()]
    return [folder / name[0] for name in sorted(filter(None, names), key=lambda name: int(name[1]))]


def _rows(table: Path) -> list[Row]:
    """The numbers of a table's complete rows. InputError for a word where a number is expected."""
    return [_numbers(row, f"{table}: line {number}") for number, row in read_table(table)]


def _numbers(row: Mapping[str, str], where: str) -> Row:
    found = {}
    for name, text in row.items():
        if text:
            try:
                found[name] = float(text)
            except ValueError:
                raise InputError(f"{where}: {name} is {text!r:.60}, expected a number") from None
    if "step" not in found:
        raise InputError(f"{where}: has no step; expected a table of a run")
    check_step(found["step"], where)
    return found


def _last_state(folder: Path) -> dict[str, Any]:
    """The JSON of the newest checkpoint's state, empty where there is none that can be read."""
    for path in sorted(folder.glob("checkpoints/step-*/state.json"), reverse=True):
        with suppress(BertDataError, ValueError):  # gone or damaged: an older one tells nearly the same
            found: dict[str, Any] = read_json(path)
            if not any(faults(found, _STATE)):
                return found
    return {}
