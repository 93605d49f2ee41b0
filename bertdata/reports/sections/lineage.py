"""Blocks of the report about the lineage of a dataset, a run or a model: every step back to the sources."""

from collections.abc import Iterator

from bertdata.errors import BertDataError
from bertdata.lineages.read import read_lineage
from bertdata.lineages.shown_settings import list_shown_settings
from bertdata.lineages.step import Input, Lineage, Step, compute_files_md5
from bertdata.lineages.tree import describe_file, join_pairs
from bertdata.reports.charts.values import DataTable
from bertdata.reports.page.blocks import PageContent, PathStep, StepsBlock

_PAGE_ROWS = 40


def make_lineage_blocks(path: str, name: str) -> tuple[PageContent, ...]:
    """Return a picture of the steps that led to an artefact, and a table with their settings and md5s.

    The result is empty if there is no record of how the artefact was made.

    path: path of the artefact.
    name: name of the artefact, for the headings.
    """
    try:
        lineage = read_lineage(path)
    except BertDataError:  # the page says elsewhere that there is no manifest, or that it is damaged
        return ()
    return (draw_steps(lineage, name), make_steps_table(lineage, name))


def draw_steps(lineage: Lineage, name: str) -> StepsBlock:
    """Return a picture of all steps, with the sources first. Each says what it has read.

    name: name of the artefact.
    """
    steps = lineage.list_steps()
    numbers = {step.record: number for number, step in enumerate(steps, 1)}
    found = tuple(
        PathStep(
            f"{number}. {step.program}",
            (
                *((one.role, _describe_input(one, numbers)) for one in step.inputs),
                ("wrote", _count_files(len(step.outputs))),
            ),
            fault="; ".join(step.all_faults),
        )
        for number, step in enumerate(steps, 1)
    )
    return StepsBlock(f"Steps that led to {name}", found)


def _describe_input(given: Input, numbers: dict[str, int]) -> str:
    """Return in words which files a step has read, and from which step they come.

    numbers: the number of each step, by its record.
    """
    files = _count_files(len(given.files)) if given.files else "files that are not known"
    if given.made_by is not None:
        return f"{files} of step {numbers[given.made_by.record]}"
    if given.source:
        return files if len(given.files) != 1 else given.files[0].name
    return f"{files}: {given.remark}"


def make_steps_table(lineage: Lineage, name: str) -> DataTable:
    """Return a table with the settings, versions and md5s of every step.

    name: name of the artefact.
    """
    rows = tuple(
        (f"{number}. {step.program}", fact, value)
        for number, step in enumerate(lineage.list_steps(), 1)
        for fact, value in _list_facts(step)
    )
    return DataTable(
        f"Every step that led to {name}", ("step", "fact", "value"), rows, page_rows=_PAGE_ROWS, wide=True
    )


def _list_facts(step: Step) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each fact about a step."""
    yield "md5 of the record", step.record
    for one in step.inputs:
        told = [describe_file(file) for file in one.files] if len(one.files) == 1 else []
        if len(one.files) > 1:
            told.append(f"{_count_files(len(one.files))}, md5 of their md5s {compute_files_md5(one.files)}")
        if one.remark:
            told.append(one.remark)
        yield f"read: {one.role}", "; ".join(told)
    yield "settings", join_pairs(list_shown_settings(step))
    if step.versions:
        yield "versions", join_pairs(step.versions)
    if len(step.outputs) == 1:
        yield "wrote", describe_file(step.outputs[0])
    else:
        yield (
            "wrote",
            f"{_count_files(len(step.outputs))}, md5 of their md5s {compute_files_md5(step.outputs)}",
        )


def _count_files(number: int) -> str:
    """Return a number of files as text."""
    return "1 file" if number == 1 else f"{number:,} files"
