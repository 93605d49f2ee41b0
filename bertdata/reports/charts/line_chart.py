"""Line chart, for example of several runs' losses over their updates."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from bertdata.reports.charts.chart import (
    Chart,
    Tooltips,
    choose_y_unit,
    format_thousands,
    label_axes,
    use_whole_number_ticks,
)
from bertdata.reports.charts.colours import LIGHT, series_colour
from bertdata.reports.charts.values import DataTable, Value, format_value

_MOST_DRAWN, _MOST_HOVERS, _MOST_ROWS, _FEW = 800, 120, 200, 24
"""Limits for the number of points of a line.

They are the largest numbers of points that are drawn, that have tooltips, and that are in the table. A line
of at most _FEW points has visible markers.
"""
_LEAST_SMOOTHED, _SMOOTHED_SHARE = 30, 0.1
"""A smoothed line has at least 30 points. Each point of it is the mean of a tenth of all points."""
_MOST_INSIDE = 3
"""Largest number of lines for which the legend is inside the axes. With more lines, it is above the axes."""


@dataclass(frozen=True)
class Line:
    """A line of a chart, through points in ascending order of x.

    dashed: True for a baseline, which is drawn in grey unless it has a ``series``.
    markers: True if the points are single measurements. They are drawn as hollow markers joined by dots.
    smoothed: True for a noisy line. If it has many points, its running mean is drawn as a strong line over
        the points themselves, which are faint.
    series: number of the line's colour. None takes the number of the line in the chart.
    """

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    dashed: bool = False
    markers: bool = False
    smoothed: bool = False
    series: int | None = None

    @property
    def is_smoothed(self) -> bool:
        """True if the running mean is drawn over the points."""
        return self.smoothed and len(self.xs) >= _LEAST_SMOOTHED


@dataclass(frozen=True, kw_only=True)
class LineChart(Chart):
    """A chart of lines, with a legend.

    whole_x: True if x is a count, so that the axis shows only whole numbers.
    log_x: True for a logarithmic x axis.
    log_y: True for a logarithmic y axis.
    x_range: first and last value of the x axis. None lets matplotlib choose.
    y_range: first and last value of the y axis. None lets matplotlib choose.
    least_top: the y axis reaches at least up to this value, so that noise near zero does not fill it.
    """

    title: str
    description: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    whole_x: bool = False
    log_x: bool = False
    log_y: bool = False
    x_range: tuple[float | None, float | None] = (None, None)
    y_range: tuple[float | None, float | None] = (None, None)
    least_top: float = 0.0

    def draw(self, panel: Any) -> None:
        """Draw the lines on matplotlib's Axes."""
        label_axes(panel, self.x_label, self.y_label)
        if self.log_x:
            panel.set_xscale("log")
            panel.xaxis.set_major_formatter(format_thousands)
        if self.log_y:
            panel.set_yscale("log")
            panel.yaxis.set_major_formatter(format_thousands)
        for number, line in enumerate(self.lines):
            self._draw_line(panel, number, line)
        panel.set_xlim(*self.x_range)
        panel.set_ylim(*self.y_range)
        if self.least_top > panel.get_ylim()[1]:
            panel.set_ylim(top=self.least_top)
        if not self.log_y:
            choose_y_unit(panel, max(map(abs, panel.get_ylim())), self.y_label)
        if self.whole_x:
            use_whole_number_ticks(panel.xaxis)
        if len(self.lines) > _MOST_INSIDE:
            columns = 3 if panel.figure.get_figwidth() > self.page_size_inches[0] else 2
            above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": columns, "borderaxespad": 0}
            panel.legend(fontsize="small", frameon=False, **above)
        elif len(self.lines) > 1:
            panel.legend(fontsize="small", frameon=False)

    def _draw_line(self, panel: Any, number: int, line: Line) -> None:
        """Draw a line, and invisible markers on it to which the tooltips belong.

        number: number of the line in the chart.
        """
        xs, ys = _thin_points(line.xs, line.ys)
        if line.series is None:
            colour = LIGHT["faint"] if line.dashed else series_colour(number)
        else:
            colour = series_colour(line.series)
        form: dict[str, Any] = {"linestyle": "--" if line.dashed else "-"}
        if line.is_smoothed:
            panel.plot(xs, ys, color=colour, linewidth=0.8, alpha=0.35)
            xs, ys = _thin_points(line.xs, compute_running_mean(line.ys))
        if line.markers:
            form = {"linestyle": ":", "marker": "D", "markerfacecolor": LIGHT["paper"]}
        elif len(xs) <= _FEW and not line.dashed:
            form["marker"] = "o"
        panel.plot(xs, ys, color=colour, linewidth=1.5, markersize=4, label=line.name, **form)
        points = self._select_tooltip_points(line)
        [hits] = panel.plot(*zip(*points, strict=True), "o", markersize=9, alpha=0.0) if points else [None]
        if hits is not None:
            hits.set_gid(f"hit-{number}")

    def table(self) -> DataTable:
        """Return the points as a table with a column for each line.

        Of long lines, only evenly spaced points are shown.
        """
        xs = sorted({x for line in self.lines for x in line.xs})
        chosen = _choose_evenly(xs, _MOST_ROWS)
        rows: list[tuple[Value, ...]] = [(x, *(_find_value(line, x) for line in self.lines)) for x in chosen]
        note = f"{len(chosen):,} of {len(xs):,} rows, evenly chosen" if len(chosen) < len(xs) else ""
        columns = (self.x_label, *(f"{line.name}: {self.y_label}" for line in self.lines))
        return DataTable(self.title, columns, tuple(rows), note)

    def tooltips(self) -> Tooltips:
        """Return the tooltips of each line's invisible markers."""
        return {
            f"hit-{number}": [
                f"{line.name}: {format_value(y)} at {self.x_label} {format_value(x)}"
                for x, y in self._select_tooltip_points(line)
            ]
            for number, line in enumerate(self.lines)
        }

    def _select_tooltip_points(self, line: Line) -> list[tuple[float, float]]:
        """Return those points of a line that have a tooltip."""
        return _choose_evenly(list(zip(line.xs, line.ys, strict=True)), _MOST_HOVERS)


def _find_value(line: Line, x: float) -> Value:
    """Return the y of a line at exactly this x, or None if the line has no such point."""
    place = bisect_left(line.xs, x)
    return line.ys[place] if place < len(line.xs) and line.xs[place] == x else None


def _choose_evenly(points: list[Any], most: int) -> list[Any]:
    """Return at most ``most`` of the points, evenly spaced. The first and the last point are among them."""
    if len(points) <= most:
        return points
    return [points[round(place * (len(points) - 1) / (most - 1))] for place in range(most)]


def compute_running_mean(ys: Sequence[float]) -> list[float]:
    """Return the mean of a tenth of all points around each point.

    Near the beginning, fewer points are taken, as many on one side as on the other. So the first point is
    unchanged, and a steep beginning is not flattened. Near the end, points are missing on one side only.
    """
    sums = [0.0, *accumulate(ys)]
    half = max(1, round(len(ys) * _SMOOTHED_SHARE / 2))
    found = []
    for place in range(len(ys)):
        reach = min(half, place)
        first, end = place - reach, min(place + reach + 1, len(ys))
        found.append((sums[end] - sums[first]) / (end - first))
    return found


def _thin_points(xs: Sequence[float], ys: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return fewer points of a long line, for drawing.

    The line is cut into stretches. The lowest and the highest point of each stretch are kept, so that no peak
    is lost.
    """
    if len(xs) <= _MOST_DRAWN:
        return list(xs), list(ys)
    # Cut the points into 400 stretches. Keep the lowest and the highest point of each stretch in their order.
    # For example, of the stretch [3, 9, 1, 4] the points [9, 1] are kept.
    edges = [place * len(xs) * 2 // _MOST_DRAWN for place in range(_MOST_DRAWN // 2 + 1)]
    kept: list[int] = []
    for first, end in pairwise(edges):
        stretch = range(first, end)
        kept += sorted({min(stretch, key=ys.__getitem__), max(stretch, key=ys.__getitem__)})
    return [xs[place] for place in kept], [ys[place] for place in kept]
