"""Bar chart of the lengths of a dataset's examples, for reports and for ``stats --picture``."""

from collections import Counter

from bertdata.reports.charts.bar_chart import BarChart, name_ranges
from bertdata.reports.summary import Statistics, make_histogram

_MOST_NAME = 64


def make_lengths_picture(statistics: Statistics) -> BarChart:
    """Return the chart for ``stats --picture``.

    Its title has the path of the dataset, the number of examples and the share of padding.
    """
    told = f"{statistics.title}: {statistics.examples:,} examples, {statistics.padding:.1%} padding"
    path = statistics.path if len(statistics.path) <= _MOST_NAME else f"…{statistics.path[-_MOST_NAME:]}"
    return make_lengths_chart(statistics.lengths, statistics.layout.max_seq_length, f"{path}\n{told}")


def make_lengths_chart(
    lengths: Counter[int], limit: int, title: str, axis_limit: int | None = None
) -> BarChart:
    """Return a chart of the number of examples of each length.

    A bar that is much higher than all others is cut off and labelled. It is usually the bar of full examples.

    lengths: number of examples, by length in tokens.
    limit: the longest possible length.
    axis_limit: for a chart that is compared with charts of other datasets, the longest possible length of all
        of them. The bars then show shares of the examples, because the datasets may have different sizes.
        None for a chart that is shown alone.
    """
    histogram = make_histogram(lengths, axis_limit or limit)
    width, examples = histogram.bin_tokens, histogram.examples
    total = lengths.total()
    full = lengths[limit] / total
    heights: tuple[float, ...] = examples
    if axis_limit is not None:
        heights = tuple(100 * number / total for number in examples)
    is_full_highest = examples.index(max(examples)) == (limit - 1) // width
    return BarChart(
        title=title,
        description=f"From {min(lengths)} to {max(lengths)} tokens. {full:.1%} of the examples have {limit}.",
        x_label=f"length (tokens, {width} per bar; at most {limit})",
        y_label="examples" if axis_limit is None else "share of the examples (%)",
        names=tuple(name_ranges(1, width, len(examples), axis_limit or limit)),
        heights={"examples": heights},
        outlier=f"{100 * full:.0f} % full" if is_full_highest else "",
        numeric=True,
    )
