"""Section of the report about the lengths of examples, padding, and the examples in a packed row."""

from collections.abc import Iterator, Sequence

from bertdata.examples.counting import QUANTILES, find_quantile, sum_weighted
from bertdata.reports.charts.bar_chart import BarChart
from bertdata.reports.lengths_chart import make_lengths_chart
from bertdata.reports.numbers import DatasetNumbers
from bertdata.reports.page.blocks import ChartBlock
from bertdata.reports.page.page import ReportSection
from bertdata.reports.sections.comparison import (
    Facts,
    describe_scopes,
    make_facts_table,
    place_side_by_side,
    to_percent,
)


def make_lengths_section(datasets: Sequence[DatasetNumbers]) -> ReportSection:
    """Return the section: charts of each dataset's lengths, and a table of numbers."""
    # Several datasets have charts with the same ranges of lengths, up to the longest row of all of them.
    axis_limit = None
    if len(datasets) > 1:
        axis_limit = max(_find_limit(numbers) for numbers in datasets)
    blocks = (
        *place_side_by_side(datasets, lambda numbers: list(_make_charts(numbers, axis_limit))),
        make_facts_table("Lengths", datasets, _collect_facts),
    )
    return ReportSection(
        "Lengths", blocks, describe_scopes(datasets, DatasetNumbers.describe_counted_lengths)
    )


def count_rows(numbers: DatasetNumbers) -> tuple[int, int]:
    """Return the number of rows of a dataset, and the number of tokens in them.

    If the manifest has these numbers, they are exact. Otherwise only the rows of the sample are counted.
    """
    assert numbers.statistics is not None
    if numbers.lengths_are_exact and numbers.entries:
        rows = [entry.examples if entry.rows is None else entry.rows for entry in numbers.entries]
        return sum(rows), sum(entry.tokens for entry in numbers.entries)
    return numbers.statistics.rows, numbers.statistics.tokens


def _collect_facts(numbers: DatasetNumbers) -> Facts:
    """Return a dataset's numbers for the section's table."""
    assert numbers.statistics is not None
    found, limit = numbers.lengths, _find_limit(numbers)
    rows, tokens = count_rows(numbers)
    total = found.total()
    facts: dict[str, int | float | None] = {
        "examples": total,
        "tokens": sum_weighted(found),
        "positions per row (tokens)": limit,
        "mean length (tokens)": round(sum_weighted(found) / total, 2),
        "shortest (tokens)": min(found),
        **{
            f"{share} % of the examples have at most (tokens)": find_quantile(found, share)
            for share in QUANTILES
        },
        "longest (tokens)": max(found),
        "full examples (% of examples)": to_percent(found[limit] / total),
    }
    if numbers.statistics.layout.packing is not None:
        facts |= {"packed rows": rows, "examples per row": round(total / rows, 4)}
    return facts | {
        "fill (% of positions that hold a token)": to_percent(tokens / (rows * limit)),
        "padding (% of positions)": to_percent(1 - tokens / (rows * limit)),
    }


def _find_limit(numbers: DatasetNumbers) -> int:
    """Return the number of tokens that fit into a row of the dataset."""
    assert numbers.statistics is not None
    return numbers.statistics.layout.max_seq_length


def _make_charts(numbers: DatasetNumbers, axis_limit: int | None) -> Iterator[ChartBlock]:
    """Yield the chart of lengths, and for packed rows a chart of examples per row.

    axis_limit: the longest possible length in any of several datasets. None for a single dataset.
    """
    assert numbers.statistics is not None
    yield ChartBlock(
        make_lengths_chart(numbers.lengths, _find_limit(numbers), "Examples by length", axis_limit)
    )
    if packs := numbers.statistics.packs:
        names = tuple(map(str, sorted(packs)))
        yield ChartBlock(
            BarChart(
                title="Packed rows by their examples",
                description=f"Rows hold {min(packs)} to {max(packs)} examples.",
                x_label="examples per row",
                y_label="rows",
                names=names,
                heights={"rows": tuple(packs[int(name)] for name in names)},
            ),
            f"Of {numbers.describe_sample()}.",
        )
