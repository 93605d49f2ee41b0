"""The sections of a page on one run, or on several over each other."""

import math
import os
from collections.abc import Sequence
from pathlib import Path

from bertdata.io import storage
from bertdata.report.charts.line_chart import LineChart
from bertdata.report.page.blocks import ChartBlock, PageContent, Prose, StepsBlock
from bertdata.report.page.page import ReportPage, ReportSection
from trainer.extensions.run_report.facts import (
    data_steps,
    evaluations_table,
    facts_table,
    settings_table,
)
from trainer.extensions.run_report.learned import learned_charts
from trainer.extensions.run_report.recorded_run import RecordedRun
from trainer.extensions.run_report.speed import OPTIMISER, SPEED, charts_of
from trainer.registry import find

_KEPT_PLAN = "plan.json"
_GUESS_NOTE = (
    "Dashed: what a guess that reads nothing reaches, on the evaluation set where there is one: always the "
    "most frequent label, or, for a loss, each label by its share of the training set."
)


def make_page(runs: Sequence[RecordedRun]) -> ReportPage:
    """The page. Its title has the directories of the runs."""
    names = short_names([run.path for run in runs])
    title = f"{'Runs' if len(runs) > 1 else 'Run'}: {', '.join(names)}"
    sections = [
        ReportSection("What was trained", (facts_table(runs, names), *_drawn_data(runs, names))),
        ReportSection("Loss and accuracy", _blocks(learned_charts(runs, names)), _GUESS_NOTE),
        _evaluations(runs, names),
        ReportSection("Optimiser", _blocks(charts_of(OPTIMISER, runs, names))),
        ReportSection("Speed", _blocks(charts_of(SPEED, runs, names))),
        ReportSection("Division of the model", _plans(runs, names)),
        _settings(runs, names),
    ]
    return ReportPage(
        title=title,
        sections=[section for section in sections if section.blocks],
        faults=[fault for run in runs for fault in _faults(run)],
    )


def short_names(paths: Sequence[str]) -> list[str]:
    """The last part of each path, with those before it where two are alike."""
    parts = [Path(os.path.normpath(path)).parts for path in paths]
    for length in range(1, max(len(one) for one in parts) + 1):
        names = ["/".join(one[-length:]) for one in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{path} ({number})" for number, path in enumerate(paths, 1)]


def _blocks(charts: Sequence[LineChart]) -> tuple[PageContent, ...]:
    return tuple(ChartBlock(chart) for chart in charts)


def _drawn_data(runs: Sequence[RecordedRun], names: Sequence[str]) -> list[PageContent]:
    """The data of each run as a path through it."""
    found = [(name, data_steps(run)) for run, name in zip(runs, names, strict=True)]
    return [StepsBlock(f"Data of {name}", steps) for name, steps in found if len(steps) > 1]


def _evaluations(runs: Sequence[RecordedRun], names: Sequence[str]) -> ReportSection:
    table = evaluations_table(runs, names)
    return ReportSection("Evaluations", () if table is None else (table,))


def _settings(runs: Sequence[RecordedRun], names: Sequence[str]) -> ReportSection:
    if not any(run.config for run in runs):
        return ReportSection("Settings", ())
    changed, every = (settings_table(runs, names, changed=one) for one in (True, False))
    return ReportSection("Settings", (changed, every) if changed.rows else (every,))


def _plans(runs: Sequence[RecordedRun], names: Sequence[str]) -> tuple[PageContent, ...]:
    """The plan of each run that is divided over devices, and was kept."""
    blocks: list[PageContent] = []
    for run, name in zip(runs, names, strict=True):
        paths = [storage.join(run.path, _KEPT_PLAN), run.config.get("plan"), run.config.get("save_plan")]
        path = next((path for path in paths if isinstance(path, str) and storage.exists(path)), None)
        if path is not None:
            blocks.append(find("split model", "drawing")(path, name))
        elif run.config.get("strategy") in ("pipelined", "sharded"):
            blocks.append(Prose(f"{name}: divided by {run.config['strategy']}, but its plan was not kept."))
    return tuple(blocks)


def _faults(run: RecordedRun) -> list[str]:
    """An ending that was no success, and numbers that are not finite."""
    faults = []
    if run.events.get("run_stop") == "aborted":
        faults.append(f"{run.path}: ended as aborted after update {run.updates:,}")
    bad = [
        (int(row["step"]) + phase.offset, name)
        for phase in run.phases
        for row in (*phase.training, *phase.evaluations)
        for name, value in row.items()
        if not math.isfinite(value)
    ]
    if bad:
        update, name = bad[0]
        faults.append(f"{run.path}: {len(bad)} numbers are not finite, first {name} of update {update:,}")
    return faults
