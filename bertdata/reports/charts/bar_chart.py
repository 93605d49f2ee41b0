"""Bar chart over names or ranges of numbers. A single bar that is much higher than the others is cut off."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from bertdata.io.terminal import escape_unprintable
from bertdata.reports.charts.chart import Chart, Tooltips, choose_y_unit, label_axes
from bertdata.reports.charts.colours import LIGHT, series_colour
from bertdata.reports.charts.values import DataTable, Value, format_value

_OUTLIER, _ROOM = 4, 1.25
"""Limits for cutting off a bar that is much higher than the others.

A bar that is more than _OUTLIER times as high as the second highest bar is cut off. It is drawn _ROOM times
as high as the second highest bar.
"""
_MOST_TICKS = 9
_MOST_WRAPPED, _WRAP_CHARACTERS = 5, 13
"""Most long names that are written in several lines below their bars, and the characters of a line."""


@dataclass(frozen=True, kw_only=True)
class BarChart(Chart):
    """A bar chart with one bar for each name, or several bars beside each other.

    heights: for each series, the height of the bar of each name.
    expected: the height that each bar should have. It is drawn as a dashed line across the bar.
    outlier: label of a bar that is cut off, such as "69 % full". If it is empty, the label is the share of
        the bar and its name.
    numeric: True if the names are numbers or ranges in ascending order. The axis then shows only some of
        them.
    top: the largest height that is drawn in full. None chooses it by the heights of this chart alone.
    places: least number of places for bars on the axis. 0 leaves no empty places.
    """

    title: str
    description: str
    x_label: str
    y_label: str
    names: tuple[str, ...]
    heights: dict[str, tuple[float, ...]]
    expected: tuple[float | None, ...] = ()
    outlier: str = ""
    numeric: bool = False
    top: float | None = None
    places: int = 0

    def draw(self, panel: Any) -> None:
        """Draw the bars on matplotlib's Axes.

        The tooltips belong to invisible bars of full height in front of them.
        """
        label_axes(panel, self.x_label, self.y_label)
        limit, outlier = self._find_cut_bar()
        width = (1.0 if self.numeric else 0.8) / len(self.heights)
        for number, (series, heights) in enumerate(self.heights.items()):
            first = (number - len(self.heights) / 2) * width
            lefts = [place + first for place in range(len(heights))]
            drawn = [min(height, limit) for height in heights]
            bars = panel.bar(
                [left + width * 0.03 for left in lefts],
                drawn,
                width=width * 0.94,
                align="edge",
                color=series_colour(number),
                label=series,
                linewidth=0,
                snap=False,
            )
            for index, bar in enumerate(bars):
                bar.set_gid(f"bar-{number}-{index}-{heights[index]}")
            areas = panel.bar(
                lefts, [limit or 1] * len(lefts), width=width, align="edge", color="none", linewidth=0
            )
            for index, area in enumerate(areas):
                area.set_gid(f"hit-{number}-{index}")
        for place, height in enumerate(self.expected):
            if height is not None:
                panel.plot(
                    [place - 0.45, place + 0.45], [height] * 2, "--", color=LIGHT["ink"], linewidth=1.6
                )
        if outlier is not None:
            self._draw_cut_bar(panel, outlier, limit)
        self._label_axes(panel)
        # The room above the bars is the same with and without a label of a bar that is cut off, so that
        # charts side by side have equal axes.
        has_room = outlier is not None or self.top is not None
        panel.set_ylim(0, limit * (1.12 if has_room else 1.05) or 1)
        choose_y_unit(panel, limit, self.y_label)

    def table(self) -> DataTable:
        """Return the heights as a table."""
        columns = (self.x_label, *(self._name_column(series) for series in self.heights))
        rows: list[tuple[Value, ...]] = []
        for index, name in enumerate(self.names):
            found = [heights[index] for heights in self.heights.values()]
            rows.append((name, *found, *self.expected[index : index + 1]))
        if self.expected:
            columns = (*columns, f"expected {self.y_label}")
        return DataTable(self.title, columns, tuple(rows))

    def tooltips(self) -> Tooltips:
        """Return the tooltip of each bar, by the identifier of its invisible bar."""
        names = [self._name_column(series) for series in self.heights]
        return {
            f"hit-{number}-{index}": f"{self.names[index]}: {format_value(height)} ({names[number]})"
            for number, heights in enumerate(self.heights.values())
            for index, height in enumerate(heights)
        }

    def _name_column(self, series: str) -> str:
        """Return the table's column heading for a series."""
        return f"{series}: {self.y_label}" if len(self.heights) > 1 else self.y_label

    def find_top(self) -> float:
        """Return the largest height that is drawn in full."""
        return self._find_cut_bar()[0]

    def _find_cut_bar(self) -> tuple[float, int | None]:
        """Return the height at which bars are cut off, and the index of the bar that is cut off.

        The index is None if no bar is cut off.
        """
        if self.top is not None:
            [heights] = self.heights.values()
            place = max(range(len(heights)), key=heights.__getitem__)
            return self.top, place if heights[place] > self.top else None
        expected = [height for height in self.expected if height is not None]
        if len(self.heights) == 1 and len(self.names) > 2:
            [heights] = self.heights.values()
            place = max(range(len(heights)), key=heights.__getitem__)
            next_highest = max([*heights[:place], *heights[place + 1 :], *expected])
            if heights[place] > _OUTLIER * next_highest > 0:
                return next_highest * _ROOM, place
        return max([0.0, *expected, *(max(heights, default=0.0) for heights in self.heights.values())]), None

    def _draw_cut_bar(self, panel: Any, place: int, limit: float) -> None:
        """Draw a gap across the bar that is cut off, and a label above it.

        place: index of the bar.
        limit: height at which it is cut off.
        """
        [heights] = self.heights.values()
        share = heights[place] / sum(heights)
        edges = (place - 0.62, place + 0.62) if not self.numeric else (place - 0.8, place + 0.8)
        for height in (0.86, 0.91):
            panel.plot(
                edges,
                [limit * (height - 0.02), limit * (height + 0.02)],
                color=LIGHT["paper"],
                linewidth=3,
                clip_on=False,
            )
        right = place > len(self.names) / 2
        panel.annotate(
            self.outlier or f"{100 * share:.0f} % {_shorten(self.names[place])}",
            (place + (0.5 if right else -0.5), limit * 1.01),
            ha="right" if right else "left",
            va="bottom",
            color=LIGHT["ink"],
            fontweight="bold",
        )

    def _label_axes(self, panel: Any) -> None:
        """Label the axes and add the legend."""
        step = -(-max(len(self.names), self.places) // _MOST_TICKS) if self.numeric else 1
        places = range(0, len(self.names), step)
        # A few long names are written in several lines. Many long names are turned.
        is_long = not self.numeric and sum(map(len, self.names)) > 40
        turned = is_long and len(self.names) > _MOST_WRAPPED
        texts = [self._shorten_tick(self.names[place]) for place in places]
        if is_long and not turned:
            texts = [fill(escape_unprintable(name), _WRAP_CHARACTERS, max_lines=3) for name in self.names]
        panel.set_xticks(
            list(places), texts, rotation=40 if turned else 0, ha="right" if turned else "center"
        )
        panel.set_xlim(-0.6, max(len(self.names), self.places) - 0.4)
        if len(self.heights) > 1:
            panel.legend(fontsize="small", frameon=False)

    def _shorten_tick(self, name: str) -> str:
        """Return the text that the axis shows for a name.

        For a range such as "9 to 16", it is the first number.
        """
        return _shorten(name.partition(" to ")[0] if self.numeric else name)


def _shorten(name: str, most: int = 22) -> str:
    """Return the name, shortened to ``most`` characters."""
    name = escape_unprintable(name)
    return name if len(name) <= most else f"{name[: most - 1]}…"


def name_ranges(first: int, width: int, count: int, last: int) -> Sequence[str]:
    """Return the names of ranges of whole numbers.

    With a width of 1 they are "1", "2" and so on. With a width of 8 they are "1 to 8", "9 to 16" and so on.

    first: first number of the first range.
    count: number of ranges.
    last: last number of the last range.
    """
    starts = range(first, first + width * count, width)
    return [str(start) if width == 1 else f"{start} to {min(start + width - 1, last)}" for start in starts]
