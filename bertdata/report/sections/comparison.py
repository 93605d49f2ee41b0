"""Datasets next to each other: one table of their facts, their blocks in columns."""

from collections.abc import Callable, Mapping, Sequence

from bertdata.report.charts.values import DataTable, Value
from bertdata.report.numbers import DatasetNumbers
from bertdata.report.page.blocks import PageContent, SideBySide

Facts = Mapping[str, Value]
"""Values by what they are, with the unit."""


def facts_table(
    caption: str, datasets: Sequence[DatasetNumbers], facts_of: Callable[[DatasetNumbers], Facts]
) -> DataTable:
    """A row for each fact, a column for each dataset. Facts that one has not are left empty there."""
    found = [facts_of(one) for one in datasets]
    labels = list(dict.fromkeys(label for facts in found for label in facts))
    names = [one.name for one in datasets] if len(datasets) > 1 else ["value"]
    rows = tuple((label, *(facts.get(label) for facts in found)) for label in labels)
    return DataTable(caption, ("quantity", *names), rows)


def beside(
    datasets: Sequence[DatasetNumbers], blocks_of: Callable[[DatasetNumbers], Sequence[PageContent]]
) -> tuple[PageContent, ...]:
    """Each dataset's blocks, in a column of its own where there are several."""
    if len(datasets) == 1:
        return tuple(blocks_of(datasets[0]))
    return (SideBySide(tuple((one.name, tuple(blocks_of(one))) for one in datasets)),)


def scopes(datasets: Sequence[DatasetNumbers], scope_of: Callable[[DatasetNumbers], str]) -> str:
    """The examples that a section's numbers are of, for each dataset or for all."""
    found = [scope_of(one) for one in datasets]
    if len(set(found)) == 1:
        return f"Of {found[0]}."
    return " ".join(f"{one.name}: of {scope}." for one, scope in zip(datasets, found, strict=True))


def percent(share: float) -> float:
    """The share in percent, with four decimals."""
    return round(100 * share, 4)
