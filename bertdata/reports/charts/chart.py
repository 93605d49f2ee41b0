"""Base class of charts, and functions that draw axes."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bertdata.reports.charts.colours import LIGHT
from bertdata.reports.charts.units import choose_unit
from bertdata.reports.charts.values import DataTable, format_value

Tooltips = Mapping[str, str | Sequence[str]]
"""Tooltips of a chart, by the identifier of the element in the drawing.

For a line with markers, the value is a list with one text for each marker.
"""


class Chart(ABC):
    """Base class of charts, which contain numbers and can draw them and list them in a table.

    title: a noun phrase.
    description: a sentence that says what the chart shows, for screen readers.
    y_label: the quantity on the y axis with its unit.
    size_inches: width and height in a picture file.
    page_size_inches: width and height in a page. They are smaller, so that the text is large enough on a
        narrow screen.
    """

    title: str
    description: str
    y_label: str
    size_inches: ClassVar[tuple[float, float]] = (7.0, 3.6)
    page_size_inches: ClassVar[tuple[float, float]] = (5.4, 3.3)

    @abstractmethod
    def draw(self, panel: Any) -> None:
        """Draw the chart on matplotlib's Axes. Elements that have a tooltip get an identifier."""

    @abstractmethod
    def table(self) -> DataTable:
        """Return the numbers as a table."""

    @abstractmethod
    def tooltips(self) -> Tooltips:
        """Return the tooltips of the chart's elements, by their identifiers."""


def label_axes(panel: Any, x_label: str, y_label: str) -> None:
    """Label the axes and draw light grid lines behind the chart."""
    panel.set_xlabel(x_label)
    panel.set_ylabel(y_label)
    panel.grid(axis="y", color=LIGHT["grid"], linewidth=0.8)
    panel.set_axisbelow(True)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def choose_y_unit(panel: Any, largest: float, label: str) -> None:
    """Label the y axis, and let it show its numbers in a unit that suits the largest of them."""
    size, name = choose_unit(largest, label)
    panel.set_ylabel(name)
    panel.yaxis.set_major_formatter(lambda value, _: format_value(float(value) / size))


def use_whole_number_ticks(axis: Any) -> None:
    """Put ticks only at whole numbers, with commas between thousands."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    axis.set_major_formatter(format_thousands)


def format_thousands(value: float, _: int) -> str:
    """Return the label of a value on an axis, with commas between thousands and without powers of ten.

    The second argument is the position of the value, which matplotlib passes and which is not used.
    """
    return format_value(float(value))
