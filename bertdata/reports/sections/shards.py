"""Section of the report about differences in size between the shards of a dataset."""

from collections.abc import Sequence
from typing import NamedTuple

from bertdata.reports.charts.bar_chart import BarChart
from bertdata.reports.charts.chart import Chart
from bertdata.reports.charts.line_chart import Line, LineChart
from bertdata.reports.charts.values import DataTable
from bertdata.reports.numbers import DatasetNumbers
from bertdata.reports.page.blocks import ChartBlock, PageContent
from bertdata.reports.page.page import ReportSection
from bertdata.reports.sections.comparison import Facts, make_facts_table, place_side_by_side, to_percent

_MOST_BARS, _MOST_ROWS = 64, 500


class _Sizes(NamedTuple):
    """The size of each shard, by its name.

    unit: tokens or bytes.
    """

    unit: str
    by_name: dict[str, int]


def make_shards_section(datasets: Sequence[DatasetNumbers]) -> ReportSection:
    """Return the section.

    All its numbers are exact, because they come from the manifest or from the file sizes.
    """
    blocks = (
        *place_side_by_side(datasets, _make_blocks),
        make_facts_table("Balance of shards", datasets, _collect_facts),
    )
    return ReportSection("Balance of shards", blocks, "Exact: of all shards.")


def _find_sizes(numbers: DatasetNumbers) -> _Sizes:
    """Return the shards' sizes in tokens if the manifest has them, otherwise in bytes."""
    if numbers.entries:
        return _Sizes("tokens", {entry.name: entry.tokens for entry in numbers.entries})
    return _Sizes("bytes", {shard.name: shard.bytes for shard in numbers.dataset.shards})


def _collect_facts(numbers: DatasetNumbers) -> Facts:
    """Return a dataset's numbers for the section's table."""
    unit, by_name = _find_sizes(numbers)
    sizes = list(by_name.values())
    mean = sum(sizes) / len(sizes)
    return {
        "shards": len(sizes),
        "bytes": sum(shard.bytes for shard in numbers.dataset.shards),
        f"{unit} per shard, least": min(sizes),
        f"{unit} per shard, mean": round(mean, 1),
        f"{unit} per shard, most": max(sizes),
        "imbalance (% by which the largest exceeds the mean)": to_percent(max(sizes) / mean - 1)
        if mean
        else 0.0,
    }


def _make_blocks(numbers: DatasetNumbers) -> Sequence[PageContent]:
    """Return the chart and the table of shards. Many shards are drawn as a line, in order of size."""
    unit, by_name = _find_sizes(numbers)
    told = f"{len(by_name):,} shards, from {min(by_name.values()):,} to {max(by_name.values()):,} {unit}."
    chart: Chart
    if len(by_name) <= _MOST_BARS:
        chart = BarChart(
            title=f"Shards by their {unit}",
            description=told,
            x_label="shard",
            y_label=unit,
            names=tuple(str(number) for number in range(1, len(by_name) + 1)),
            heights={unit: tuple(by_name.values())},
            numeric=True,
        )
    else:
        ascending = sorted(by_name.values())
        chart = LineChart(
            title=f"Shards by their {unit}, in ascending order",
            description=told,
            x_label="shards",
            y_label=unit,
            lines=(Line(unit, range(1, len(ascending) + 1), ascending),),
            whole_x=True,
            y_range=(0, None),
        )
    return ChartBlock(chart), _make_table(unit, by_name)


def _make_table(unit: str, by_name: dict[str, int]) -> DataTable:
    """Return a table of the shards.

    If there are many, it has only those whose sizes are furthest from the mean.
    """
    mean = sum(by_name.values()) / len(by_name)
    rows = [
        (name, size, to_percent(size / mean - 1) if mean else 0.0, number)
        for number, (name, size) in enumerate(by_name.items(), 1)
    ]
    note = ""
    if len(rows) > _MOST_ROWS:
        note = f"The {_MOST_ROWS} of {len(rows):,} shards that are furthest from the mean."
        rows = sorted(rows, key=lambda row: -abs(row[2]))[:_MOST_ROWS]
    return DataTable("Shards", ("shard", unit, "above the mean (%)", "number"), tuple(rows), note, 10)
