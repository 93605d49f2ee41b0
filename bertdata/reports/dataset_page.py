"""The report page of one dataset, or of several side by side."""

from collections.abc import Iterator, Sequence

from bertdata.examples.objectives import describe_objective
from bertdata.reports.numbers import DatasetNumbers
from bertdata.reports.page.page import ReportPage, ReportSection
from bertdata.reports.sections.left_out import make_left_out_section
from bertdata.reports.sections.lengths import make_lengths_section
from bertdata.reports.sections.masks import make_masks_section
from bertdata.reports.sections.objective_statistics import make_objective_sections
from bertdata.reports.sections.passages import make_passages_section
from bertdata.reports.sections.provenance import make_provenance_section
from bertdata.reports.sections.savings import make_savings_section
from bertdata.reports.sections.settings import make_settings_section
from bertdata.reports.sections.shards import make_shards_section
from bertdata.reports.sections.tokens import make_tokens_section
from bertdata.reports.sections.words import make_words_section


def make_dataset_page(datasets: Sequence[DatasetNumbers]) -> ReportPage:
    """Return the report page of these datasets. The page begins with the faults of all datasets."""
    return ReportPage(
        title=" and ".join(numbers.name for numbers in datasets),
        lead=tuple(_describe_dataset(numbers) for numbers in datasets),
        faults_title="Faults of the files",
        faults=tuple(dict.fromkeys(fault for numbers in datasets for fault in numbers.faults)),
        sections=tuple(_make_sections(datasets)),
    )


def _describe_dataset(numbers: DatasetNumbers) -> str:
    """Return the line under the page's title that describes a dataset."""
    shards = len(numbers.dataset.shards)
    title = describe_objective(numbers.dataset.title)  # without a recipe, the title is the objective
    told = f"{numbers.dataset.path}: {title}, {shards:,} shard{'s' * (shards != 1)}"
    if numbers.examples is not None:
        told += f", {numbers.examples:,} examples"
    if numbers.statistics is not None:
        told += f" for the objective {describe_objective(numbers.statistics.layout.objective)}"
    return told


def _make_sections(datasets: Sequence[DatasetNumbers]) -> Iterator[ReportSection]:
    """Yield the sections of the page. A section for which no dataset has data is left out.

    Datasets that could not be read appear only in the sections about provenance and settings.
    """
    read = [numbers for numbers in datasets if numbers.statistics is not None]
    yield make_provenance_section(datasets)
    found = [make_left_out_section(datasets), make_settings_section(datasets)]
    if read:
        found += [
            make_lengths_section(read),
            make_savings_section(read),
            make_masks_section(read),
            *make_objective_sections(read),
            make_words_section(read),
        ]
    # A damaged manifest may list no shards. Such a dataset is left out of the section about the sizes of
    # shards.
    if with_shards := [numbers for numbers in datasets if numbers.dataset.shards]:
        found.append(make_shards_section(with_shards))
    if read:
        found += [make_tokens_section(read), make_passages_section(read)]
    yield from (section for section in found if section is not None)
