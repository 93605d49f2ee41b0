"""Section of the report about the padding that could be saved by arranging the examples in other ways.

The ways are bins (batches of examples of similar length), packed rows, and flat batches (examples one after
another without padding).
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertdata.examples.bins import count_bins
from bertdata.examples.counting import sum_weighted
from bertdata.reports.charts.bar_chart import BarChart
from bertdata.reports.charts.values import DataTable
from bertdata.reports.numbers import DatasetNumbers
from bertdata.reports.page.blocks import ChartBlock, PageContent
from bertdata.reports.page.page import ReportSection
from bertdata.reports.sections.comparison import describe_scopes, place_side_by_side, to_percent

if TYPE_CHECKING:
    from bertdata.packing.pack_plan import Histogram

_MOST_IN_A_PACK = 3
_BINS = 4


def make_savings_section(datasets: Sequence[DatasetNumbers]) -> ReportSection | None:
    """Return the section, or None if all datasets are already packed."""
    padded = [
        numbers for numbers in datasets if numbers.statistics and numbers.statistics.layout.packing is None
    ]
    if not padded:
        return None
    scope = describe_scopes(padded, DatasetNumbers.describe_counted_lengths)
    note = f"{scope} The saving holds where a position of padding takes as much time as a token."
    return ReportSection("Packing and bins", place_side_by_side(padded, _make_blocks), note)


def _make_blocks(numbers: DatasetNumbers) -> Sequence[PageContent]:
    """Return the chart and the table for a dataset."""
    assert numbers.statistics is not None
    positions = count_positions(numbers.lengths, numbers.statistics.layout.max_seq_length)
    tokens, padded = sum_weighted(numbers.lengths), next(iter(positions.values()))
    rows = tuple(
        (way, computed, to_percent(tokens / computed), to_percent(1 - computed / padded))
        for way, computed in positions.items()
    )
    title = "Positions of an epoch by the way of padding"
    chart = BarChart(
        title=title,
        description=". ".join(f"{way}: {saved:.1f}% saved" for way, _, _, saved in rows) + ".",
        x_label="way of padding",
        y_label="share of the padded positions (%)",
        names=tuple(positions),
        heights={"computed": tuple(to_percent(computed / padded) for computed in positions.values())},
    )
    columns = ("way of padding", "positions of an epoch", "fill (%)", "saved (%)")
    return ChartBlock(chart), DataTable("Packing and bins", columns, rows)


def count_positions(lengths: Counter[int], limit: int) -> dict[str, int]:
    """Return the number of positions that the model computes in an epoch, for each way of arranging the
    examples.

    The first way is padded rows, with one example in each row.

    lengths: number of examples, by length in tokens.
    limit: length of a padded row.
    """
    from bertdata.packing.longest_first import pack_longest_first

    width = -(-limit // _BINS)
    packed = pack_longest_first(_make_histogram(lengths, limit), _MOST_IN_A_PACK)
    return {
        "Padded, one example per row": lengths.total() * limit,
        f"{count_bins(limit, width)} bins of {width} tokens": sum(
            -(-length // width) * width * examples for length, examples in lengths.items()
        ),
        f"Packed, up to {_MOST_IN_A_PACK} per row": packed.rows * limit,
        "Flat, no padding": sum_weighted(lengths),
    }


def _make_histogram(lengths: Counter[int], limit: int) -> "Histogram":
    """Return the counts as an array, whose element n is the number of examples of length n."""
    import numpy as np

    found = np.zeros(limit + 1, np.int64)
    for length, examples in lengths.items():
        found[length] = examples
    return found
