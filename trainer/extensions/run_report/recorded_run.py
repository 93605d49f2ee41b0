"""A run as its directory tells it: rows of its tables, lines of its log, settings of its last checkpoint."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertdata.errors import InputError, MissingInputError
from bertdata.io import storage
from trainer.extensions.run_report.foreign_logs import DLLOGGER, FOREIGN_LOGS, read_dllogger
from trainer.report.table_rows import read_table

TRAINING, EVALUATION = "training.csv", "evaluation.csv"

Row = Mapping[str, float]
"""The numbers of a row by column; a column without a number is left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedPhase:
    """The rows of a phase. offset: the updates of the phases before it. name: empty for a run of one."""

    name: str
    offset: int
    training: Sequence[Row]
    evaluations: Sequence[Row]

    @property
    def span(self) -> list[float]:
        """The first and the last update that is reported, counted over all phases."""
        steps = [row["step"] + self.offset for row in (*self.training, *self.evaluations)]
        return [min(steps), max(steps)] if steps else []

    def points(
        self, rows: Sequence[Row], column: str, factor: float = 1.0
    ) -> tuple[list[float], list[float]]:
        """The updates, counted over all phases, and the finite values of a column times the factor."""
        found = [
            (row["step"] + self.offset, row[column] * factor)
            for row in rows
            if math.isfinite(row.get(column, math.nan))
        ]
        return [x for x, _ in found], [y for _, y in found]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedRun:
    """A run. state: the JSON of its last checkpoint, empty where there is none.

    starts: what each process of the run told of itself in dllogger.json, in order. events: its other events
    there by name, the last of each. seconds: from the first to the last line there, pauses included.
    """

    path: str
    phases: Sequence[RecordedPhase]
    state: Mapping[str, Any] = field(default_factory=dict)
    starts: Sequence[Mapping[str, Any]] = ()
    events: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None

    @property
    def config(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.state.get("config", {})
        return found

    @property
    def updates(self) -> int:
        """The last update that is reported, counted over all phases."""
        return int(max((phase.span[1] for phase in self.phases if phase.span), default=0))

    def columns(self, table: str) -> list[str]:
        """The columns that have a number, in their order. table: training or evaluations."""
        rows = (row for phase in self.phases for row in getattr(phase, table))
        return list(dict.fromkeys(name for row in rows for name in row))


def read_run(path: str) -> RecordedRun:
    """The run in a directory, or that of another program's log. InputError where nothing tells of one."""
    path = path.removeprefix("file://")
    if not storage.exists(path) and not storage.is_directory(path):
        raise MissingInputError(f"{path}: no such directory")
    if not storage.is_directory(path):
        return _of_log(path, path)
    folder = Path(path)
    if not (folder / TRAINING).exists():
        for name in FOREIGN_LOGS:
            if (folder / name).exists():
                return _of_log(str(folder / name), path)
        raise InputError(
            f"{path}: holds no {TRAINING}, {' or '.join(FOREIGN_LOGS)}: give the "
            "--output-dir of a run that has made an update"
        )
    state = _last_state(folder)
    log = folder / DLLOGGER
    told = read_dllogger(str(log)) if log.exists() else None
    return RecordedRun(
        path=path,
        phases=_phases(folder, state),
        state=state,
        starts=told.starts if told else (),
        events=told.events if told else {},
        seconds=told.seconds if told else None,
    )


def _of_log(log: str, path: str) -> RecordedRun:
    """The run that another program's log tells of."""
    read = FOREIGN_LOGS.get(storage.base_name(log), read_dllogger)
    found = read(log)
    if not found.training and not found.evaluations:
        raise InputError(f"{log}: tells of no update")
    phase = RecordedPhase(name="", offset=0, training=found.training, evaluations=found.evaluations)
    return RecordedRun(
        path=path, phases=[phase], starts=found.starts, events=found.events, seconds=found.seconds
    )


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
        phase = RecordedPhase(
            name=name,
            offset=offset,
            training=_rows(table),
            evaluations=_rows(evaluations) if evaluations.exists() else [],
        )
        phases.append(phase)
        offset += int(max((row["step"] for row in phase.training), default=0))
    return phases


def _earlier(folder: Path) -> list[Path]:
    """The tables of earlier phases, in order: training.1.csv, training.2.csv."""
    found = {int(one.name.split(".")[1]): one for one in folder.glob("training.*.csv") if _is_numbered(one)}
    return [found[number] for number in sorted(found)]


def _is_numbered(path: Path) -> bool:
    return re.fullmatch(r"training\.\d+\.csv", path.name) is not None


def _rows(table: Path) -> list[Row]:
    """The numbers of a table's complete rows. InputError for a word where a number is expected."""
    return [
        _numbers(row.items(), f"{table}: row {number}") for number, row in enumerate(read_table(table), 1)
    ]


def _numbers(items: Iterable[tuple[str, str]], where: str) -> Row:
    found = {}
    for name, text in items:
        if text:
            try:
                found[name] = float(text)
            except ValueError:
                raise InputError(f"{where}: {name} is {text!r:.60}, expected a number") from None
    if "step" not in found:
        raise InputError(f"{where}: has no step; expected a table of a run")
    return found


def _last_state(folder: Path) -> dict[str, Any]:
    """The JSON of the newest checkpoint's state, empty where there is none that can be read."""
    for path in sorted(folder.glob("checkpoints/step-*/state.json"), reverse=True):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # removed meanwhile, or damaged: an older one tells nearly the same
            continue
        if isinstance(found, dict):
            return found
    return {}
