"""The report page of one dataset, or of several side by side."""

from collections.abc import Iterator, Sequence

from bertdata.examples.objectives import describe_objective
from bertdata.report.numbers import DatasetNumbers
from bertdata.report.page.page import ReportPage, ReportSection
from bertdata.report.sections.lengths import lengths
from bertdata.report.sections.masks import masks
from bertdata.report.sections.objective_statistics import make_objective_sections
from bertdata.report.sections.passages import passages
from bertdata.report.sections.provenance import provenance
from bertdata.report.sections.savings import savings
from bertdata.report.sections.settings import settings
from bertdata.report.sections.shards import shards
from bertdata.report.sections.tokens import tokens
from bertdata.report.sections.words import words


def dataset_page(datasets: Sequence[DatasetNumbers]) -> ReportPage:
    """Return the page. The faults of all datasets are at its top."""
    return ReportPage(
        title=" and ".join(one.name for one in datasets),
        lead=tuple(_lead(one) for one in datasets),
        faults_title="Faults of the files",
        faults=tuple(dict.fromkeys(fault for one in datasets for fault in one.faults)),
        sections=tuple(_sections(datasets)),
    )


def _lead(one: DatasetNumbers) -> str:
    """Return the line under the title that describes a dataset."""
    shards = len(one.dataset.shards)
    title = describe_objective(one.dataset.title)  # without a recipe, the title is the objective
    told = f"{one.dataset.path}: {title}, {shards:,} shard{'s' * (shards != 1)}"
    if one.examples is not None:
        told += f", {one.examples:,} examples"
    if one.statistics is not None:
        told += f" for the objective {describe_objective(one.statistics.layout.objective)}"
    return told


def _sections(datasets: Sequence[DatasetNumbers]) -> Iterator[ReportSection]:
    """Yield the sections for which there are data.

    Datasets that could not be read appear only in the sections about provenance and settings.
    """
    read = [one for one in datasets if one.statistics is not None]
    yield provenance(datasets)
    found = [settings(datasets)]
    if read:
        found += [lengths(read), savings(read), masks(read), *make_objective_sections(read), words(read)]
    # A damaged manifest may list no shards, and without shards there is no balance to show.
    if with_shards := [one for one in datasets if one.dataset.shards]:
        found.append(shards(with_shards))
    if read:
        found += [tokens(read), passages(read)]
    yield from (section for section in found if section is not None)
