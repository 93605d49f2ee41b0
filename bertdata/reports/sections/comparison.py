"""Functions that show several datasets beside each other: a table with a column for each, and blocks in
columns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bertdata.reports.charts.equal_axes import use_equal_axes
from bertdata.reports.charts.values import DataTable, Value, format_full_value
from bertdata.reports.numbers import DatasetNumbers
from bertdata.reports.page.blocks import ChartBlock, PageContent, SideBySide

Facts = Mapping[str, Value]
"""Numbers about a dataset, by a label that includes the unit."""

SAME, DIFFERENT = "same", "differs"
"""Words with which a table compares the values of several datasets."""


def make_facts_table(
    caption: str, datasets: Sequence[DatasetNumbers], collect_facts: Callable[[DatasetNumbers], Facts]
) -> DataTable:
    """Return a table with a row for each number and a column for each dataset.

    A last column says where the datasets differ, and the rows that differ are marked.

    collect_facts: function that returns a dataset's numbers, by label. If a dataset lacks a label, its cell
        is empty.
    """
    found = [collect_facts(numbers) for numbers in datasets]
    labels = list(dict.fromkeys(label for facts in found for label in facts))
    rows: list[tuple[Value, ...]] = [(label, *(facts.get(label) for facts in found)) for label in labels]
    if len(datasets) == 1:
        return DataTable(caption, ("quantity", "value"), tuple(rows))
    compared = [compare_values(values) for _, *values in rows]
    columns = ("quantity", *(numbers.name for numbers in datasets), "compared")
    return DataTable(
        caption,
        columns,
        tuple((*row, word) for row, word in zip(rows, compared, strict=True)),
        marked_rows=list_different_rows(compared),
    )


def compare_values(values: Sequence[Value]) -> str:
    """Return "same" if the values of all datasets are equal, otherwise "differs"."""
    return SAME if len(set(map(format_full_value, values))) == 1 else DIFFERENT


def list_different_rows(compared: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the rows whose values differ. The argument has one word for each row."""
    return tuple(number for number, word in enumerate(compared) if word == DIFFERENT)


def place_side_by_side(
    datasets: Sequence[DatasetNumbers], make_blocks: Callable[[DatasetNumbers], Sequence[PageContent]]
) -> tuple[PageContent, ...]:
    """Return the blocks of all datasets. If there are several datasets, their blocks are put in columns.

    Charts of the same quantity get equal axes.

    make_blocks: function that makes the blocks of a dataset.
    """
    if len(datasets) == 1:
        return tuple(make_blocks(datasets[0]))
    columns = [list(make_blocks(numbers)) for numbers in datasets]
    titles = dict.fromkeys(
        block.chart.title for blocks in columns for block in blocks if isinstance(block, ChartBlock)
    )
    for title in titles:
        _equalise_charts(columns, title)
    headings = (numbers.name for numbers in datasets)
    return (SideBySide(tuple(zip(headings, columns, strict=True))),)


def _equalise_charts(columns: Sequence[list[PageContent]], title: str) -> None:
    """Give the charts with this title equal axes. Replace them in the columns, which are lists of blocks."""
    found = [
        (blocks, place, block)
        for blocks in columns
        for place, block in enumerate(blocks)
        if isinstance(block, ChartBlock) and block.chart.title == title
    ]
    charts = use_equal_axes([block.chart for _, _, block in found])
    for (blocks, place, block), chart in zip(found, charts, strict=True):
        blocks[place] = replace(block, chart=chart)


def describe_scopes(datasets: Sequence[DatasetNumbers], describe: Callable[[DatasetNumbers], str]) -> str:
    """Return a sentence that says which examples the numbers are about.

    It names each dataset unless the answer is the same for all.

    describe: function that returns the answer for a dataset.
    """
    found = [describe(numbers) for numbers in datasets]
    if len(set(found)) == 1:
        return f"Of {found[0]}."
    return " ".join(f"{numbers.name}: of {scope}." for numbers, scope in zip(datasets, found, strict=True))


def to_percent(share: float) -> float:
    """Return a share as a percentage, rounded to four decimals."""
    return round(100 * share, 4)
