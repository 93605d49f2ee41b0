"""The sections of a report page about one run, or about several runs that are compared."""

import math
import shlex
from collections.abc import Iterator, Sequence

from bertdata.io import storage
from bertdata.reports.charts.line_chart import LineChart
from bertdata.reports.charts.values import DataTable
from bertdata.reports.page.blocks import (
    ChartBlock,
    CommandBlock,
    PageContent,
    Prose,
    SideBySide,
    StepsBlock,
)
from bertdata.reports.page.page import ReportPage, ReportSection
from bertdata.reports.sections.lineage import make_lineage_blocks
from trainer.logs.charts import OPTIMISER, SPEED, make_charts, make_result_charts
from trainer.logs.recorded_run import RecordedRun
from trainer.report.cautions import find_cautions
from trainer.report.classes import make_class_blocks
from trainer.report.facts import (
    describe_data_overlap,
    make_data_path,
    make_evaluations_table,
    make_facts_table,
    make_settings_table,
)
from trainer.report.headlines import make_headlines
from trainer.report.split_plan import draw_plan_file
from trainer.report.words import describe_measure

_KEPT_PLAN = "plan.json"
_STARTED_BY = {"command": "Command", "call": "Python call"}
"""Keys of the log with what started a run, and the words for it in the page."""
_COMMAND_CHARACTERS = 88
"""Longest line of a command line in the page, if its flags are short enough."""
_GUESS_NOTE = (
    "Dashed: what a guess that reads nothing reaches, on the evaluation set where there is one: always the "
    "most frequent label, or, for a loss, each label by its share of the training set. Where a training line "
    "is faint, the strong line over it is its running mean."
)


def make_page(runs: Sequence[RecordedRun]) -> ReportPage:
    """Return the report page about the runs. Its title contains their names."""
    title = f"{'Runs' if len(runs) > 1 else 'Run'}: {', '.join(run.name for run in runs)}"
    sections = [
        ReportSection("Results", _make_headlines(runs)),
        ReportSection("Command line", tuple(_make_commands(runs))),
        ReportSection(
            "What was trained", (make_facts_table(runs), *_draw_data_paths(runs), *_make_data_notes(runs))
        ),
        ReportSection("Lineage", tuple(_draw_lineages(runs))),
        ReportSection("Loss and accuracy", _make_chart_blocks(make_result_charts(runs)), _GUESS_NOTE),
        ReportSection("Labels", _make_class_blocks(runs)),
        ReportSection("Evaluations", tuple(filter(None, [make_evaluations_table(runs)]))),
        ReportSection("Optimiser", _make_chart_blocks(make_charts(OPTIMISER, runs))),
        ReportSection("Speed", _make_chart_blocks(make_charts(SPEED, runs))),
        ReportSection("Division of the model", tuple(_draw_split_plans(runs))),
        ReportSection("Settings", tuple(_make_settings_tables(runs))),
    ]
    return ReportPage(
        title=title,
        sections=[section for section in sections if section.blocks],
        faults=[fault for run in runs for fault in _find_faults(run)],
        warnings=find_cautions(runs),
    )


def _make_headlines(runs: Sequence[RecordedRun]) -> tuple[PageContent, ...]:
    """Return the headline figures. Those of several runs are beside each other."""
    if len(runs) == 1:
        return (make_headlines(runs[0]),)
    return (SideBySide(tuple((run.name, (make_headlines(run),)) for run in runs)),)


def _make_commands(runs: Sequence[RecordedRun]) -> Iterator[CommandBlock]:
    """Yield the command lines and Python calls that started each run. A run that was resumed may have
    several.
    """
    for run in runs:
        started = dict.fromkeys(
            (key, str(start[key])) for start in run.log.starts for key in _STARTED_BY if key in start
        )
        for number, (key, text) in enumerate(started, 1):
            which = f"{_STARTED_BY[key]} {number}" if len(started) > 1 else _STARTED_BY[key]
            lines = _wrap_command(text) if key == "command" else tuple(text.splitlines())
            yield CommandBlock(f"{which} that started {run.name}", lines)


def _wrap_command(command: str) -> tuple[str, ...]:
    """Return the lines of a command, which is cut before flags. A shell accepts the lines too."""
    try:
        words = shlex.split(command)
    except ValueError:  # the log was edited
        return (command,)
    # Each flag stays together with its values, as in ["python -m trainer pretrain", "--steps 5", "--rows"].
    parts: list[list[str]] = [[]]
    for word in words:
        if word.startswith("--"):
            parts.append([])
        parts[-1].append(word)
    lines = [""]
    for part in map(shlex.join, parts):
        if len(lines[-1]) + len(part) > _COMMAND_CHARACTERS and lines[-1]:
            lines.append("   ")
        lines[-1] = f"{lines[-1]} {part}" if lines[-1] else part
    return (*(f"{line} \\" for line in lines[:-1]), lines[-1])


def _make_class_blocks(runs: Sequence[RecordedRun]) -> tuple[PageContent, ...]:
    """Return the tables about labels. Those of several runs are beside each other."""
    found = [(run.name, tuple(make_class_blocks(run))) for run in runs]
    found = [(name, blocks) for name, blocks in found if blocks]
    if len(found) == 1 == len(runs):
        return found[0][1]
    return (SideBySide(tuple(found)),) if found else ()


def _make_chart_blocks(charts: Sequence[LineChart]) -> tuple[PageContent, ...]:
    """Return the charts as content of the HTML page."""
    return tuple(map(ChartBlock, charts))


def _draw_data_paths(runs: Sequence[RecordedRun]) -> list[PageContent]:
    """Return a picture for each run that shows the way of its data, from training datasets to evaluation
    datasets.
    """
    found = [(run.name, make_data_path(run)) for run in runs]
    return [StepsBlock(f"Data of {name}", steps) for name, steps in found if len(steps) > 1]


def _draw_lineages(runs: Sequence[RecordedRun]) -> Iterator[PageContent]:
    """Yield a picture and a table of the steps that led to each run, from the dump or the user's files on."""
    for run in runs:
        yield from make_lineage_blocks(run.path, run.name)


def _make_data_notes(runs: Sequence[RecordedRun]) -> Iterator[Prose]:
    """Yield notes about evaluation texts that the runs were also trained on."""
    for run in runs:
        if notes := list(describe_data_overlap(run)):
            yield Prose(*notes)


def _make_settings_tables(runs: Sequence[RecordedRun]) -> list[DataTable]:
    """Return a table of the settings that were changed, and a table of all settings. [] if no run has
    settings.
    """
    tables = [make_settings_table(runs, changed=changed) for changed in (True, False)]
    return [table for table in tables if table.rows]


def _draw_split_plans(runs: Sequence[RecordedRun]) -> Iterator[PageContent]:
    """Yield the plan of each run whose model was divided over several devices, if the run has kept it."""
    for run in runs:
        paths = [storage.join(run.path, _KEPT_PLAN), run.config.get("plan"), run.config.get("save_plan")]
        path = next((path for path in paths if isinstance(path, str) and storage.exists(path)), None)
        if path is not None:
            yield draw_plan_file(path, run.name)
        elif (strategy := run.config.get("strategy")) in ("pipelined", "sharded"):
            yield Prose(f"{run.name}: divided by {strategy}, but its plan was not kept.")


def _find_faults(run: RecordedRun) -> list[str]:
    """Return what went wrong in the run: an end without success, or numbers that are not finite."""
    faults = []
    if run.log.events.get("run_stop") == "aborted":
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
        numbers = "1 number is" if len(bad) == 1 else f"{len(bad):,} numbers are"
        name = describe_measure(name)
        faults.append(f"{run.path}: {numbers} not finite, first the {name} of update {update:,}")
    return faults
