"""Sections of the report about statistics that only some objectives have, for example about random pairs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertdata.reports.charts.bar_chart import BarChart
from bertdata.reports.charts.values import Value
from bertdata.reports.numbers import DatasetNumbers
from bertdata.reports.page.blocks import ChartBlock, PageContent
from bertdata.reports.page.page import ReportSection
from bertdata.reports.sections.comparison import (
    Facts,
    describe_scopes,
    make_facts_table,
    place_side_by_side,
    to_percent,
)

_ELSEWHERE = ("lengths", "masks")


def make_objective_sections(datasets: Sequence[DatasetNumbers]) -> Iterator[ReportSection]:
    """Yield a section for each statistic that the datasets' objectives compute.

    Lengths and masks are left out, because they have sections in other modules.
    """
    names = dict.fromkeys(name for numbers in datasets for name in _find_statistics(numbers))
    for name in names:
        yield _make_section(name, [numbers for numbers in datasets if name in _find_statistics(numbers)])


def _find_statistics(numbers: DatasetNumbers) -> dict[str, dict[str, Any]]:
    """Return the statistics that a dataset's objective computed, by name, except lengths and masks."""
    found = numbers.statistics.findings.sections if numbers.statistics else {}
    return {name: section for name, section in found.items() if name not in _ELSEWHERE}


def _make_section(name: str, datasets: list[DatasetNumbers]) -> ReportSection:
    """Return the section for the statistics of this name."""
    title = name.replace("_", " ").capitalize()

    def collect_facts(numbers: DatasetNumbers) -> Facts:
        return dict(_flatten_statistics("", _find_statistics(numbers)[name]))

    def make_charts(numbers: DatasetNumbers) -> Sequence[PageContent]:
        return [ChartBlock(chart) for chart in _make_label_charts(title, _find_statistics(numbers)[name])]

    blocks = (*place_side_by_side(datasets, make_charts), make_facts_table(title, datasets, collect_facts))
    return ReportSection(title, blocks, describe_scopes(datasets, DatasetNumbers.describe_sample))


def _make_label_charts(title: str, section: Mapping[str, Any]) -> Iterator[BarChart]:
    """Yield a chart if the statistics count two labels of examples, such as random and real pairs."""
    labels = [name for name in section if f"{name}_share" in section]
    if len(labels) != 2:
        return
    shares = [to_percent(section[f"{name}_share"]) for name in labels]
    told = ", ".join(f"{share:.1f}% {name}" for name, share in zip(labels, shares, strict=True))
    yield BarChart(
        title=f"{title}: examples by their label",
        description=f"{told}.",
        x_label="label",
        y_label="share of the examples (%)",
        names=tuple(labels),
        heights={"share": tuple(shares)},
    )


def _flatten_statistics(before: str, section: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    """Yield the label and the value of each number in nested dictionaries. Labels include the outer labels.

    before: the outer labels.
    """
    for name, value in section.items():
        label = f"{before} {name}".strip().replace("_", " ")
        if name == "quantiles":
            yield from ((f"{before}, {part} % have at most", value[part]) for part in value)
        elif isinstance(value, Mapping):
            yield from _flatten_statistics(label, value)
        elif name.endswith("share"):
            yield f"{label} (%)", to_percent(value)
        else:
            yield label, value
