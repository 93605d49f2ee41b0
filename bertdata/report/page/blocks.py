"""The blocks of a section. Each has a template that shows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from bertdata.report.charts.chart import Chart
from bertdata.report.charts.values import DataTable


class PageContent(Protocol):
    """A block of a page: anything with a template of its own."""

    @property
    def template(self) -> str: ...


class Prose:
    """Paragraphs of plain text."""

    template = "prose.html"

    def __init__(self, *paragraphs: str) -> None:
        self.paragraphs = paragraphs


@dataclass(frozen=True)
class ChartBlock:
    """A chart under its title, with its numbers as a table behind it. note: a line below."""

    chart: Chart
    note: str = ""

    template: ClassVar[str] = "chart.html"


@dataclass(frozen=True)
class DrawingBlock:
    """A drawing that is SVG already, made by our own code. table: its numbers."""

    title: str
    description: str
    svg: str
    table: DataTable

    template: ClassVar[str] = "drawing.html"


@dataclass(frozen=True)
class PathStep:
    """A step of a path.

    details: (name, value) pairs. fault: what is wrong here, if anything is.
    """

    title: str
    details: tuple[tuple[str, str], ...] = ()
    fault: str = ""


@dataclass(frozen=True)
class StepsBlock:
    """Steps in their order, drawn as boxes with arrows. label: what the path is, for a screen reader."""

    label: str
    steps: tuple[PathStep, ...]

    template: ClassVar[str] = "steps.html"


@dataclass(frozen=True)
class MarkedWord:
    """A word of a passage.

    kind: a name of the legend, or "" for plain text. note: small text behind it. joined: no blank is
    before it, as before a piece that continues a word.
    """

    text: str
    kind: str = ""
    note: str = ""
    joined: bool = False


@dataclass(frozen=True)
class Passage:
    """A text of words in parts, such as the segments of an example, and lines of facts below."""

    title: str
    parts: tuple[tuple[str, tuple[MarkedWord, ...]], ...]
    facts: tuple[str, ...] = ()


@dataclass(frozen=True)
class PassagesBlock:
    """Passages with a search and pages.

    legend: (kind, meaning) pairs. Kinds are masked, random, kept and special, as the style sheet has them.
    """

    label: str
    legend: tuple[tuple[str, str], ...]
    passages: tuple[Passage, ...]
    page_rows: int = 20

    template: ClassVar[str] = "passages.html"


@dataclass(frozen=True)
class SideBySide:
    """Blocks next to each other where the window has room, each under its heading."""

    columns: tuple[tuple[str, Sequence[PageContent]], ...]

    template: ClassVar[str] = "side_by_side.html"
