"""Side-by-side layout for several datasets: a table with a column per dataset, and blocks in columns."""

from collections.abc import Callable, Mapping, Sequence

from bertdata.report.charts.values import DataTable, Value
from bertdata.report.numbers import DatasetNumbers
from bertdata.report.page.blocks import PageContent, SideBySide

Facts = Mapping[str, Value]
"""Numbers of a dataset, by label. The label includes the unit."""


def make_facts_table(
    caption: str, datasets: Sequence[DatasetNumbers], facts_of: Callable[[DatasetNumbers], Facts]
) -> DataTable:
    """Return a table with a row for each label and a column for each dataset.

    facts_of: function that returns a dataset's numbers by label. A cell is empty if the dataset lacks the
    label.
    """
    found = [facts_of(one) for one in datasets]
    labels = list(dict.fromkeys(label for facts in found for label in facts))
    names = [one.name for one in datasets] if len(datasets) > 1 else ["value"]
    rows = tuple((label, *(facts.get(label) for facts in found)) for label in labels)
    return DataTable(caption, ("quantity", *names), rows)


def place_side_by_side(
    datasets: Sequence[DatasetNumbers], blocks_of: Callable[[DatasetNumbers], Sequence[PageContent]]
) -> tuple[PageContent, ...]:
    """Return the blocks of all datasets. For several datasets, they are in columns.

    blocks_of: function that makes the blocks of a dataset.
    """
    if len(datasets) == 1:
        return tuple(blocks_of(datasets[0]))
    return (SideBySide(tuple((one.name, tuple(blocks_of(one))) for one in datasets)),)


def describe_scopes(datasets: Sequence[DatasetNumbers], scope_of: Callable[[DatasetNumbers], str]) -> str:
    """Return a sentence that says which examples the numbers are about, for all datasets or for each."""
    found = [scope_of(one) for one in datasets]
    if len(set(found)) == 1:
        return f"Of {found[0]}."
    return " ".join(f"{one.name}: of {scope}." for one, scope in zip(datasets, found, strict=True))


def to_percent(share: float) -> float:
    """Return a share as a percentage, rounded to four decimals."""
    return round(100 * share, 4)
