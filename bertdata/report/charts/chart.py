"""A chart: title, numbers, drawing."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bertdata.report.charts.colours import LIGHT
from bertdata.report.charts.values import DataTable, shown

Hovers = Mapping[str, str | Sequence[str]]
"""The tooltips of a drawing: of a part by its id, or of each of some markers by the id of all."""


class Chart(ABC):
    """Numbers that can be drawn and can be listed.

    title: a noun phrase. description: one sentence with what a person would see, for a screen reader.
    """

    title: str
    description: str
    size_inches: ClassVar[tuple[float, float]] = (7.0, 3.6)

    @abstractmethod
    def draw(self, panel: Any) -> None:
        """Draw it on matplotlib's Axes. Parts that Hovers names get these ids."""

    @abstractmethod
    def table(self) -> DataTable:
        """Its numbers."""

    @abstractmethod
    def hovers(self) -> Hovers:
        """The values of its parts."""


def label_axes(panel: Any, x_label: str, y_label: str) -> None:
    """Axes with their labels and light lines behind the drawing."""
    panel.set_xlabel(x_label)
    panel.set_ylabel(y_label)
    panel.grid(axis="y", color=LIGHT["grid"], linewidth=0.8)
    panel.set_axisbelow(True)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def whole_numbers(axis: Any) -> None:
    """Ticks at whole numbers alone, with thousands apart."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    axis.set_major_formatter(thousands)


def thousands(value: float, _: int) -> str:
    """The label of a tick: thousands apart, no powers of ten."""
    return shown(float(value))
