"""Functions that show several datasets beside each other: a table with a column for each, and blocks in
columns.
"""

from collections.abc import Callable, Mapping, Sequence

from bertdata.report.charts.values import DataTable, Value
from bertdata.report.numbers import DatasetNumbers
from bertdata.report.page.blocks import PageContent, SideBySide

Facts = Mapping[str, Value]
"""Numbers about a dataset, by a label that includes the unit."""


def make_facts_table(
    caption: str, datasets: Sequence[DatasetNumbers], collect_facts: Callable[[DatasetNumbers], Facts]
) -> DataTable:
    """Return a table with a row for each number and a column for each dataset.

    collect_facts: function that returns a dataset's numbers, by label. If a dataset lacks a label, its cell
        is empty.
    """
    found = [collect_facts(numbers) for numbers in datasets]
    labels = list(dict.fromkeys(label for facts in found for label in facts))
    names = [numbers.name for numbers in datasets] if len(datasets) > 1 else ["value"]
    rows = tuple((label, *(facts.get(label) for facts in found)) for label in labels)
    return DataTable(caption, ("quantity", *names), rows)


def place_side_by_side(
    datasets: Sequence[DatasetNumbers], make_blocks: Callable[[DatasetNumbers], Sequence[PageContent]]
) -> tuple[PageContent, ...]:
    """Return the blocks of all datasets. If there are several datasets, their blocks are put in columns.

    make_blocks: function that makes the blocks of a dataset.
    """
    if len(datasets) == 1:
        return tuple(make_blocks(datasets[0]))
    return (SideBySide(tuple((numbers.name, tuple(make_blocks(numbers))) for numbers in datasets)),)


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
