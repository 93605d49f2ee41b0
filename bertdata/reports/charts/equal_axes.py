"""Equal axes for charts that are shown side by side, so that their heights and widths can be compared."""

from collections.abc import Sequence
from dataclasses import replace

from bertdata.reports.charts.bar_chart import BarChart
from bertdata.reports.charts.chart import Chart
from bertdata.reports.charts.line_chart import LineChart


def use_equal_axes(charts: Sequence[Chart]) -> list[Chart]:
    """Return the charts with equal axes. Charts that show different quantities are returned unchanged."""
    first = charts[0]
    if any((chart.title, chart.y_label) != (first.title, first.y_label) for chart in charts):
        return list(charts)
    bars = [chart for chart in charts if isinstance(chart, BarChart)]
    lines = [chart for chart in charts if isinstance(chart, LineChart)]
    if len(bars) == len(charts):
        return list(_equalise_bars(bars))
    if len(lines) == len(charts):
        return list(_equalise_lines(lines))
    return list(charts)


def _equalise_bars(charts: Sequence[BarChart]) -> Sequence[BarChart]:
    """Return bar charts with the same height and, if their names are numbers, the same width."""
    top = max(chart.find_top() for chart in charts)
    places = max(len(chart.names) for chart in charts)
    return [replace(chart, top=top, places=places if chart.numeric else 0) for chart in charts]


def _equalise_lines(charts: Sequence[LineChart]) -> Sequence[LineChart]:
    """Return line charts with the same first and last value of each axis."""
    found = [line for chart in charts for line in chart.lines if line.xs]
    if not found:
        return charts
    xs, ys = [x for line in found for x in line.xs], [y for line in found for y in line.ys]
    bottom, top = (min(ys) / 1.3, max(ys) * 1.3) if charts[0].log_y else (min(0, *ys), max(ys) * 1.05)
    return [replace(chart, x_range=(min(xs), max(xs)), y_range=(bottom, top)) for chart in charts]
