"""Facts about runs as tables: what was trained on what, by which settings, with which results."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from bertdata.dataset.discover import FoundDataset, find_datasets
from bertdata.dataset.mixture.weights import split_paths
from bertdata.errors import BertDataError
from bertdata.records import DEFAULT_OBJECTIVE
from bertdata.report.charts.values import DataTable, Value
from bertdata.report.page.blocks import PathStep
from trainer.config.settings import Config
from trainer.extensions.run_report.learned import guess_column
from trainer.extensions.run_report.recorded_run import RecordedRun

_PAGE_ROWS = 25
_SETTINGS_BESIDE = ("output_dir", "resume", "resume_step", "steps_this_run", "no_progress_bar")
"""Settings that say nothing about what is trained."""


def facts_table(runs: Sequence[RecordedRun], names: Sequence[str]) -> DataTable:
    """The task, data, device and progress of each run. A fact that no run tells is left out."""
    rows = [(label, *(find(run) for run in runs)) for label, find in _FACTS.items()]
    told = tuple(row for row in rows if any(row[1:]))
    return DataTable("What was trained", ("fact", *names), told, wide=True)


def settings_table(runs: Sequence[RecordedRun], names: Sequence[str], *, changed: bool) -> DataTable:
    """The settings, a row each. changed: only those that differ from the defaults, or between the runs."""
    usual = Config.of().as_json()
    rows: list[tuple[Value, ...]] = []
    for name in dict.fromkeys(name for run in runs for name in run.config):
        found = [run.config.get(name) for run in runs]
        is_usual = all(value == usual.get(name) for value in found)
        if not changed or not (is_usual or name in _SETTINGS_BESIDE):
            rows.append((f"--{name.replace('_', '-')}", *(_setting(value) for value in found)))
    caption = "Settings that are not the defaults" if changed else "All settings"
    columns = ("setting", *names)
    pages = 0 if changed else _PAGE_ROWS
    return DataTable(caption, columns, tuple(rows), page_rows=pages, wide=len(runs) > 1)


def evaluations_table(runs: Sequence[RecordedRun], names: Sequence[str]) -> DataTable | None:
    """Every evaluation, a row each. None where there is none."""
    columns = list(dict.fromkeys(name for run in runs for name in run.columns("evaluations")))
    columns = _beside_guesses([name for name in columns if name != "step"])
    rows: list[tuple[Value, ...]] = []
    for run, name in zip(runs, names, strict=True):
        for phase in run.phases:
            which = ", ".join(part for part in (name if len(runs) > 1 else "", phase.name) if part)
            for row in phase.evaluations:
                update = int(row["step"]) + phase.offset
                label = f"{which}: {update:,}" if which else update
                rows.append((label, *(_whole(row.get(column)) for column in columns)))
    if not rows:
        return None
    first = "update" if not isinstance(rows[0][0], str) else "run and update"
    heads = tuple(_UNITS.get(column, column.replace("_", " ")) for column in columns)
    return DataTable("Evaluations", (first, *heads), tuple(rows), page_rows=_PAGE_ROWS, wide=True)


def _beside_guesses(columns: Sequence[str]) -> list[str]:
    """The columns, each before what a guess reaches there."""
    guesses = {guess_column(column): column for column in columns}
    own = [column for column in columns if column not in guesses]
    after = {column: guess for guess, column in guesses.items() if guess in columns}
    return [name for column in own for name in (column, after.get(column)) if name is not None]


_UNITS = {
    "trained": "examples trained on",
    "examples": "examples evaluated",
    "most_frequent_accuracy": "guess masked lm accuracy",
}


def data_steps(run: RecordedRun) -> tuple[PathStep, ...]:
    """The datasets that the run learned from by their manifests, the run, those it was evaluated on."""
    before, after = (
        [step for path in _paths(run.config.get(key)) for step in _dataset_steps(kind, path)]
        for kind, key in (("Trained on", "train_data"), ("Evaluated on", "eval_data"))
    )
    done = (("task", _task(run)), ("updates", f"{run.updates:,}"), ("model", _model(run)))
    step = PathStep(f"Run {run.path}", _known(*done))
    return (*before, step, *after)


def _dataset_steps(kind: str, path: str) -> list[PathStep]:
    """A step of each dataset at the path, or one that says that they are not at hand."""
    try:
        return [_dataset_step(kind, found) for found in find_datasets(path)]
    except BertDataError:
        return [PathStep(f"{kind} {path}", (("now", "not at hand"),))]


def _dataset_step(kind: str, found: FoundDataset) -> PathStep:
    title = f"{kind} {found.path}"
    if found.manifest is None:
        return PathStep(title, (("files", f"{len(found.shards):,}"), ("manifest", "none")))
    manifest, settings = found.manifest, found.manifest.plan.settings
    sums = {name: sum(getattr(shard, name) for shard in manifest.shards) for name in ("examples", "tokens")}
    sizes = settings.by_name
    details = [
        ("objective", manifest.plan.objective or DEFAULT_OBJECTIVE),
        ("shards", f"{len(manifest.shards):,}"),
        ("examples", f"{sums['examples']:,}"),
        ("tokens", f"{sums['tokens']:,}"),
        ("longest", f"{sizes['max_seq_length']:,} tokens" if "max_seq_length" in sizes else ""),
        ("vocabulary", f"md5 {settings.vocabulary['md5']}"),
    ]
    if length := sizes.get("max_seq_length"):
        fill = sums["tokens"] / (sums["examples"] * length) if sums["examples"] else 0
        details.append(("fill", f"{fill:.1%} of the positions of rows of one example"))
    return PathStep(title, _known(*details))


def _known(*facts: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in facts if value)


def _paths(given: object) -> list[str]:
    """The paths of a setting. One of the command line that cannot be read is told as it is."""
    if not isinstance(given, str):
        return []
    with suppress(BertDataError):
        return list(split_paths(given))
    return [given]


def _task(run: RecordedRun) -> str:
    return str(run.state.get("task") or run.config.get("task") or "")


def _model(run: RecordedRun) -> str:
    model = run.state.get("model", {})
    if not {"num_hidden_layers", "hidden_size", "num_attention_heads"} <= model.keys():
        return ""
    return (
        f"{model['num_hidden_layers']} layers of {model['hidden_size']:,}, "
        f"{model['num_attention_heads']} heads, {model.get('vocab_size', 0):,} tokens"
    )


def _update(run: RecordedRun) -> str:
    optimiser, rate = run.config.get("optimiser"), run.config.get("base_learning_rate")
    return f"{optimiser}, learning rate {rate:g} at most" if optimiser and isinstance(rate, float) else ""


def _last_start(name: str) -> Callable[[RecordedRun], str]:
    """The value that the last process of the run told of itself under a name."""

    def find(run: RecordedRun) -> str:
        value = run.starts[-1].get(name, "") if run.starts else ""
        return f"{value:,}" if isinstance(value, int) else str(value)

    return find


def _starts(run: RecordedRun) -> str:
    return "; ".join(str(start.get("start_point", "")) for start in run.starts)


def _duration(run: RecordedRun) -> str:
    return "" if run.seconds is None else f"{run.seconds:,.0f} s from the first line of its log to the last"


def _progress(run: RecordedRun) -> str:
    steps = run.config.get("steps")
    status = run.events.get("run_stop")
    last = run.phases[-1]
    planned = f"{run.updates - last.offset:,} of {steps:,}" if isinstance(steps, int) else f"{run.updates:,}"
    phases = f" in {last.name}, {run.updates:,} in all" if last.offset else ""
    ended = f": {status}" if isinstance(status, str) else ": not ended" if run.starts else ""
    return f"{planned}{phases}{ended}"


_FACTS: Mapping[str, Callable[[RecordedRun], str]] = {
    "directory": lambda run: run.path,
    "task": _task,
    "model": _model,
    "weights": _last_start("weights"),
    "training data": lambda run: str(run.config.get("train_data") or ""),
    "evaluation data": lambda run: str(run.config.get("eval_data") or ""),
    "evaluation and guess": lambda run: str(run.events.get("evaluation", "")),
    "updates made": _progress,
    "an update": _last_start("updates"),
    "micro-batches": _last_start("micro_batches"),
    "optimiser": _update,
    "precision": lambda run: str(run.config.get("precision") or ""),
    "device": _last_start("device"),
    "workers": _last_start("workers"),
    "began": _starts,
    "time": _duration,
    "versions": lambda run: ", ".join(run.state.get("versions", ())),
}


def _setting(value: Any) -> Value:
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _whole(value: float | None) -> Value:
    return int(value) if value is not None and value.is_integer() and abs(value) >= 1 else value
