"""Tables of facts about runs for a report page: data, settings, progress and results."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from bertdata.dataset.discover import FoundDataset, find_datasets
from bertdata.dataset.mixture.opening import open_weighted
from bertdata.dataset.shared_shards import count_shared_shards
from bertdata.errors import BertDataError
from bertdata.examples.objectives import describe_objective
from bertdata.records import DEFAULT_OBJECTIVE
from bertdata.reports.charts.values import DataTable, Value
from bertdata.reports.page.blocks import PathStep
from bertdata.reports.sections.comparison import compare_values, list_different_rows
from bertdata.reports.sections.provenance import describe_text_counts
from trainer.config.settings import Config, format_flag, get_known_names
from trainer.logs.charts import name_baseline_column
from trainer.logs.recorded_run import RecordedRun, Row, find_columns
from trainer.report.run_data import split_setting_paths
from trainer.report.words import describe_measure, describe_task
from trainer.tasks.classification.head_labels import join_first, quote_label

_PAGE_ROWS = 25
_MOST_INPUTS = 3
_OMITTED_SETTINGS = ("output_dir", "resume", "resume_step", "steps_this_run", "no_progress_bar")
"""Settings that the tables leave out, because they do not affect what is trained."""


def make_facts_table(runs: Sequence[RecordedRun]) -> DataTable:
    """Return a table with the task, data, device and progress of each run. Facts that no run has are left
    out.
    """
    facts = [_collect_facts(run) for run in runs]
    rows: list[tuple[Value, ...]] = [(label, *(one[label] for one in facts)) for label in facts[0]]
    rows = [row for row in rows if any(row[1:])]
    if len(runs) == 1:
        return DataTable("What was trained", ("fact", "value"), tuple(rows), wide=True)
    compared = [compare_values(row[1:]) for row in rows]
    return DataTable(
        "What was trained",
        ("fact", *_name_columns(runs), "compared"),
        tuple((*row, word) for row, word in zip(rows, compared, strict=True)),
        wide=True,
        marked_rows=list_different_rows(compared),
    )


def _name_columns(runs: Sequence[RecordedRun]) -> list[str]:
    """Return the heading of each run's column. The page's title names a single run already."""
    return [run.name for run in runs] if len(runs) > 1 else ["value"]


def _collect_facts(run: RecordedRun) -> dict[str, str]:
    """Return facts about the run, each with its label. An unknown fact is ""."""
    config, log = run.config, run.log
    start = log.starts[-1] if log.starts else {}
    rate, optimiser = config.get("base_learning_rate"), config.get("optimiser")
    has_update = optimiser and isinstance(rate, float)
    first_to_last = "from the first line of its log to the last"
    return {
        "directory": run.path,
        "task": describe_task(_find_run_task(run)),
        "labels": _format_labels(config),
        "model": _describe_model_size(run),
        "weights": _format_value(start.get("weights")),
        "training data": _format_value(config.get("train_data")),
        "evaluation data": _format_value(config.get("eval_data")),
        "evaluation and its guess": _format_value(log.events.get("evaluation")),
        "updates made": ": ".join(filter(None, (describe_progress(run), describe_end(run)))),
        "planned updates": _format_value(start.get("updates")),
        "micro-batches": _format_value(start.get("micro_batches")),
        "optimiser": f"{optimiser}, learning rate {rate:g} at most" if has_update else "",
        "precision": _format_value(config.get("precision")),
        "device": _format_value(start.get("device")),
        "workers": _format_value(start.get("workers")),
        "start": "; ".join(_format_value(one.get("start_point")) for one in log.starts),
        "time": "" if log.seconds is None else f"{log.seconds:,.0f} s {first_to_last}",
        "versions": ", ".join(run.state.get("versions", ())),
    }


def _format_value(value: Any) -> str:
    """Return a value from a run's log or settings as text. None becomes ""."""
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def make_settings_table(runs: Sequence[RecordedRun], *, changed: bool) -> DataTable:
    """Return a table with a row for each setting, a column for each run, and what the setting means.

    Of several runs, the rows of settings that differ are marked.

    changed: True for only those settings that are not the default or differ between the runs.
    """
    usual, known = Config.of().as_json(), get_known_names()
    rows: list[tuple[Value, ...]] = []
    compared: list[str] = []
    for name in dict.fromkeys(name for run in runs for name in run.config):
        found = [run.config.get(name) for run in runs]
        is_usual = all(value == usual.get(name) for value in found)
        if changed and (is_usual or name in _OMITTED_SETTINGS):
            continue
        values = [_format_setting(value) for value in found]
        meaning = str(known.get(name, {}).get("description", ""))
        row: tuple[Value, ...] = (format_flag(name), *values)
        if len(runs) > 1:
            compared.append(compare_values(values))
            row = (*row, compared[-1])
        rows.append((*row, meaning))
    caption = "Settings that are not the defaults" if changed else "All settings"
    heads = [*_name_columns(runs), "compared"] if len(runs) > 1 else _name_columns(runs)
    return DataTable(
        caption,
        ("setting", *heads, "meaning"),
        tuple(rows),
        page_rows=0 if changed else _PAGE_ROWS,
        wide=True,
        marked_rows=list_different_rows(compared),
    )


def make_evaluations_table(runs: Sequence[RecordedRun]) -> DataTable | None:
    """Return a table with a row for each evaluation, or None if no run has evaluations."""
    evaluations = [row for run in runs for phase in run.phases for row in phase.evaluations]
    kept = {*_COUNTS, *select_results(evaluations)}
    names = find_columns(runs, "evaluations")
    guesses = {name_baseline_column(name) for name in kept}
    columns = _add_guess_columns([name for name in names if name in kept | guesses])
    rows: list[tuple[Value, ...]] = []
    for phase in (phase for run in runs for phase in run.phases):
        for row in phase.evaluations:
            update = int(row["step"]) + phase.offset
            label = f"{phase.label()}: {update:,}" if phase.label() else update
            rows.append((label, *(_convert_whole_number(row.get(column)) for column in columns)))
    if not rows:
        return None
    first = "update" if not isinstance(rows[0][0], str) else "run and update"
    heads = tuple(map(describe_measure, columns))
    return DataTable("Evaluations", (first, *heads), tuple(rows), page_rows=_PAGE_ROWS, wide=True)


def _add_guess_columns(columns: Sequence[str]) -> list[str]:
    """Return the columns, each followed by the column with its baseline if the table has one.

    The baseline is the score of always guessing the most frequent label.
    """
    # Two columns of results may have the same baseline, which is then shown once.
    results = {name_baseline_column(column): column for column in columns}
    own = [column for column in columns if column not in results]
    after = {column: guess for guess, column in results.items() if guess in columns}
    return [name for column in own for name in (column, after.get(column)) if name is not None]


_COUNTS = ("trained", "examples")
"""Columns of evaluation.csv that count examples and are no results."""


def select_results(rows: Sequence[Row]) -> list[str]:
    """Return the columns of results in rows of evaluation.csv, without the guesses and without repetitions.

    For example, the columns label_accuracy and acc have the same numbers, so only the first is returned.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    guesses = {name_baseline_column(name) for name in names}
    # The sum of all losses is the last choice, because the only loss of a task has a name of its own.
    results = [name for name in names if name not in ("step", "loss", *_COUNTS) and name not in guesses]
    chosen: dict[tuple[float | None, ...], str] = {}
    for name in (*results, *(["loss"] if "loss" in names else [])):
        chosen.setdefault(tuple(row.get(name) for row in rows), name)
    return list(chosen.values())


def make_data_path(run: RecordedRun) -> tuple[PathStep, ...]:
    """Return the steps of a picture that shows the data's way: training datasets, the run, evaluation
    datasets.
    """
    done = (
        ("task", describe_task(_find_run_task(run))),
        ("updates", f"{run.updates:,}"),
        ("model", _describe_model_size(run)),
    )
    return (
        *_iterate_dataset_steps("Trained on", run, "train_data"),
        PathStep(f"Run {run.path}", _drop_empty_facts(*done)),
        *_iterate_dataset_steps("Evaluated on", run, "eval_data"),
    )


def _iterate_dataset_steps(kind: str, run: RecordedRun, setting: str) -> Iterator[PathStep]:
    """Yield a step of the picture for each dataset that a setting names. The step says if the dataset no
    longer exists.

    kind: label of the step.
    """
    for path in split_setting_paths(run, setting):
        try:
            yield from [_make_dataset_step(kind, found) for found in find_datasets(path)]
        except BertDataError:
            yield PathStep(f"{kind} {path}", (("now", "not at hand"),))


def _make_dataset_step(kind: str, found: FoundDataset) -> PathStep:
    """Return the picture's step for a dataset, with facts from the dataset's manifest.

    kind: label of the step.
    """
    title = f"{kind} {found.path}"
    if found.manifest is None:
        return PathStep(title, (("files", f"{len(found.shards):,}"), ("manifest", "none")))
    manifest, settings = found.manifest, found.manifest.plan.settings
    examples, tokens = (sum(getattr(one, name) for one in manifest.shards) for name in ("examples", "tokens"))
    length = settings.by_name.get("max_seq_length")
    fill = tokens / (examples * length) if length and examples else 0
    return PathStep(
        title,
        _drop_empty_facts(
            ("made from", _list_inputs([entry.name for entry in manifest.inputs])),
            ("objective", describe_objective(manifest.plan.objective or DEFAULT_OBJECTIVE)),
            ("shards", f"{len(manifest.shards):,}"),
            ("examples", f"{examples:,}"),
            ("tokens", f"{tokens:,}"),
            ("longest", f"{length:,} tokens" if length else ""),
            ("vocabulary", f"md5 {settings.vocabulary['md5']}"),
            ("fill", f"{fill:.1%} of the positions of rows of one example" if length else ""),
        ),
    )


def _list_inputs(names: Sequence[str]) -> str:
    """Return the names of input files as text. Of many names, only the first is returned."""
    if len(names) <= _MOST_INPUTS:
        return ", ".join(names)
    return f"{names[0]} and {len(names) - 1:,} more"


def describe_data_overlap(run: RecordedRun) -> Iterator[str]:
    """Yield sentences about how many evaluation texts the run was also trained on.

    This is found by comparing the manifests of the datasets: their text files and their shards.
    """
    training, held_out = run.config.get("train_data"), run.config.get("eval_data")
    # If the data were moved or deleted, the steps of the picture say so already.
    with suppress(BertDataError):
        for path in split_setting_paths(run, "train_data"):
            for found in find_datasets(path):
                yield from (f"{found.path}: {told}" for told in describe_text_counts(found))
    if isinstance(training, str) and isinstance(held_out, str):
        with suppress(BertDataError):
            unverified = bool(run.config.get("unverified"))
            trained = open_weighted(training, unverified=unverified, split="training")
            evaluated = open_weighted(held_out, unverified=unverified, split="test")
            shared = count_shared_shards(trained, evaluated)
            yield f"evaluation files in training: {shared} of {len(evaluated.shards)}"


def _drop_empty_facts(*facts: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the facts (pairs of label and value) without those whose value is empty."""
    return tuple((name, value) for name, value in facts if value)


def _find_run_task(run: RecordedRun) -> str:
    """Return the name of the run's task, or "" if it is not known."""
    return str(run.state.get("task") or run.config.get("task") or "")


def _format_labels(config: Mapping[str, Any]) -> str:
    """Return the labels that the run has learned as text, each with its number. "" if the task has no
    labels.
    """
    labels = config.get("labels")
    if not isinstance(labels, list) or not labels:
        return ""
    return join_first([f"{number} {quote_label(str(label))}" for number, label in enumerate(labels)])


def _describe_model_size(run: RecordedRun) -> str:
    """Return the size of the run's model in words, or "" if it is not known."""
    model = run.state.get("model", {})
    if not {"num_hidden_layers", "hidden_size", "num_attention_heads"} <= model.keys():
        return ""
    return (
        f"{model['num_hidden_layers']} layers of {model['hidden_size']:,}, "
        f"{model['num_attention_heads']} heads, {model.get('vocab_size', 0):,} tokens"
    )


def describe_progress(run: RecordedRun) -> str:
    """Return in words how many of the planned updates were made."""
    steps = run.config.get("steps")
    if isinstance(steps, int):
        # Tables may count each update as several steps, so convert the number of updates to such steps.
        steps *= int(run.config.get("steps_per_update") or 1)
    last = run.phases[-1]
    planned = f"{run.updates - last.offset:,} of {steps:,}" if isinstance(steps, int) else f"{run.updates:,}"
    phases = f" in {last.name}, {run.updates:,} in all" if last.offset else ""
    return f"{planned}{phases}"


def describe_end(run: RecordedRun) -> str:
    """Return in words how the run ended. "" if its log does not tell."""
    status = run.log.events.get("run_stop")
    if isinstance(status, str):
        return status
    return "not ended" if run.log.starts else ""


def _format_setting(value: Any) -> Value:
    """Return the value of a setting as text, or None if it is not set."""
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _convert_whole_number(value: float | None) -> Value:
    """Return a whole number as int, so that it is shown without ".0". Return other values unchanged."""
    return int(value) if value is not None and value.is_integer() and abs(value) >= 1 else value
