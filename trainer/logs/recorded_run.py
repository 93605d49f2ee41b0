"""Reading of a finished or running run from its directory: its tables, its log, and its last checkpoint's
settings.
"""

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

_STATE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "phase": {"type": "integer"},
        "task": {"type": ["string", "null"]},
        "config": {"type": "object"},
        "best": {
            "type": "object",
            "properties": {
                "metric": {"type": "string"},
                "value": {"type": "number"},
                "number": {"type": "integer"},
            },
        },
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
"""JSON Schema of those entries of a checkpoint's state that a report page shows. The states of all versions
fit it.
"""

Row = Mapping[str, float]
"""The numbers of a table's row, by column. Columns without a number are left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedPhase:
    """The rows that one phase of a run wrote to training.csv and evaluation.csv.

    name: "phase 1" and so on, or "" for a run with a single phase.
    offset: number of updates in the phases before this one.
    run: the run's name if a page shows several runs, otherwise "".
    series: number of the phase's colour in charts.
    """

    name: str = ""
    offset: int = 0
    training: Sequence[Row]
    evaluations: Sequence[Row]
    run: str = ""
    series: int = 0

    def label(self, kind: str = "") -> str:
        """Return the name of a line in a chart: the names of run and phase, and the kind of line.

        Names that are not needed to tell the lines apart are left out.
        kind: for example "evaluation", or "".
        """
        return ", ".join(filter(None, (self.run, self.name, kind)))

    @property
    def span(self) -> list[float]:
        """The numbers of the first and the last logged update, counted over all phases. [] if there are no
        rows.
        """
        steps = [row["step"] + self.offset for row in (*self.training, *self.evaluations)]
        return [min(steps), max(steps)] if steps else []

    def points(
        self, rows: Sequence[Row], column: str, factor: float = 1.0
    ) -> tuple[list[float], list[float]]:
        """Return the points of a chart line: numbers of updates, and values of a column.

        Updates are counted over all phases. Values that are not finite are left out.
        rows: the phase's rows of training or of evaluations.
        factor: factor by which the values are multiplied.
        """
        found = [(row["step"] + self.offset, row.get(column, math.nan) * factor) for row in rows]
        finite = [(x, y) for x, y in found if math.isfinite(y)]
        return [x for x, _ in finite], [y for _, y in finite]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedRun:
    """A run that a report page shows.

    state: JSON of the state in its last checkpoint, {} if there is no checkpoint.
    log: contents of its dllogger.json.
    name: short name that distinguishes it from the other runs on the page.
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
        """The number of the last logged update, counted over all phases."""
        return int(max((phase.span[1] for phase in self.phases if phase.span), default=0))


def find_columns(runs: Sequence[RecordedRun], table: str) -> list[str]:
    """Return the names of the columns in which at least one run has a number.

    table: "training" or "evaluations".
    """
    rows = (row for run in runs for phase in run.phases for row in getattr(phase, table))
    return list(dict.fromkeys(name for row in rows for name in row))


def read_runs(paths: Sequence[str]) -> list[RecordedRun]:
    """Read several runs with ``read_run``. Give each run a different name, and each phase a different
    colour.
    """
    runs = [read_run(path) for path in paths]
    named = []
    for place, (run, name) in enumerate(zip(runs, shorten_names([run.path for run in runs]), strict=True)):
        phases = [
            replace(phase, run=name, series=place) if len(runs) > 1 else replace(phase, series=2 * number)
            for number, phase in enumerate(run.phases)
        ]
        named.append(replace(run, name=name, phases=phases))
    return named


def shorten_names(paths: Sequence[str]) -> list[str]:
    """Return a short name for each path: its last part, with as many parts before it as make the names
    different.
    """
    parts = [Path(os.path.normpath(path)).parts for path in paths]
    for length in range(1, max(len(one) for one in parts) + 1):
        names = ["/".join(one[-length:]) for one in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{path} ({number})" for number, path in enumerate(paths, 1)]


def read_run(path: str) -> RecordedRun:
    """Read a run of this trainer from its directory, or a run of another program from its log.

    Raises InputError if there is no run.
    """
    if storage.is_remote(path):
        return replace(read_run(_bring(path)), path=path)
    path = path.removeprefix("file://")
    if not storage.is_directory(path):
        if not storage.exists(path):
            raise MissingInputError(f"{path}: no such directory")
        return _read_log_run(path, path)
    folder = Path(path)
    log = folder / DLLOGGER
    if (folder / TRAINING).exists():
        state = _read_last_state(folder)
        told = read_dllogger(str(log)) if log.exists() else LoggedRun()
        return RecordedRun(path=path, phases=_read_phases(folder, state), state=state, log=told)
    for name in FOREIGN_LOGS:
        if (folder / name).exists():
            return _read_log_run(str(folder / name), path)
    raise InputError(
        f"{path}: holds no {TRAINING}, {' or '.join(FOREIGN_LOGS)}: give the "
        "--output-dir of a run that has made an update"
    )


def _bring(url: str) -> str:
    """Download a run's logs, or a log file, and return the local path."""
    from trainer.remote.copies import bring_checkpoint, bring_report_files

    is_file = storage.exists(url) and not storage.is_directory(url)
    return bring_checkpoint(url) if is_file else str(bring_report_files(url))


def _read_log_run(log: str, path: str) -> RecordedRun:
    """Return the run that another program's log describes.

    log: path of the log.
    path: path that the user gave.
    """
    found = FOREIGN_LOGS.get(storage.get_base_name(log), read_dllogger)(log)
    if not found.training and not found.evaluations:
        raise InputError(f"{log}: tells of no update")
    phase = RecordedPhase(training=found.training, evaluations=found.evaluations)
    return RecordedRun(path=path, phases=[phase], log=found)


def _read_phases(folder: Path, state: Mapping[str, Any]) -> list[RecordedPhase]:
    """Read the phases of a run from its tables. The tables of earlier phases have a number in their names.

    A table with a number may also belong to an earlier run in the same directory. Then it is ignored.
    """
    tables = [folder / TRAINING]
    if state.get("phase", 1) > 1:
        tables = [*_find_earlier_tables(folder), *tables]
    phases: list[RecordedPhase] = []
    offset = 0
    for number, table in enumerate(tables, 1):
        name = f"phase {number}" if len(tables) > 1 else ""
        evaluations = table.with_name(table.name.replace("training", "evaluation"))
        evaluated = _read_rows(evaluations) if evaluations.exists() else []
        training = _read_rows(table)
        phases.append(RecordedPhase(name=name, offset=offset, training=training, evaluations=evaluated))
        offset += int(max((row["step"] for row in training), default=0))
    return phases


def _find_earlier_tables(folder: Path) -> list[Path]:
    """Return the tables of earlier phases in order, for example training.1.csv and training.2.csv."""
    names = [re.fullmatch(r"training\.(\d+)\.csv", path.name) for path in folder.iterdir()]
    return [folder / name[0] for name in sorted(filter(None, names), key=lambda name: int(name[1]))]


def _read_rows(table: Path) -> list[Row]:
    """Return the numbers of the complete rows of a table. Raises InputError for text in place of a number."""
    return [_parse_numbers(row, f"{table}: line {number}") for number, row in read_table(table)]


def _parse_numbers(row: Mapping[str, str], where: str) -> Row:
    """Return the numbers of a table's row by column, without empty cells.

    where: file and line, for the message of an error.
    """
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


def _read_last_state(folder: Path) -> dict[str, Any]:
    """Return the state in the newest readable checkpoint as JSON, or {} if there is none."""
    for path in sorted(folder.glob("checkpoints/step-*/state.json"), reverse=True):
        # if the newest checkpoint is damaged or being deleted, the one before has nearly the same state
        with suppress(BertDataError, ValueError):
            found: dict[str, Any] = read_json(path)
            if not any(faults(found, _STATE_SCHEMA)):
                return found
    return {}
