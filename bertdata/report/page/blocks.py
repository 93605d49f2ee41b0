"""The blocks that a section of a page is made of. Each names the template that shows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from bertdata.report.charts.chart import Chart
from bertdata.report.charts.values import DataTable


class PageContent(Protocol):
    """Type of a block: any object with the name of a template."""

    @property
    def template(self) -> str: ...


class Prose:
    """Paragraphs of plain text."""

    template = "prose.html"

    def __init__(self, *paragraphs: str) -> None:
        self.paragraphs = paragraphs


@dataclass(frozen=True)
class ChartBlock:
    """A chart with its title, and its numbers as a table.

    note: a line below.
    """

    chart: Chart
    note: str = ""

    template: ClassVar[str] = "chart.html"


@dataclass(frozen=True)
class DrawingBlock:
    """A drawing that is already SVG, made by our own code.

    table: its numbers.
    """

    title: str
    description: str
    svg: str
    table: DataTable

    template: ClassVar[str] = "drawing.html"


@dataclass(frozen=True)
class PathStep:
    """A step of a path.

    details: pairs of name and value.
    fault: what is wrong at this step. Empty if nothing is wrong.
    """

    title: str
    details: tuple[tuple[str, str], ...] = ()
    fault: str = ""


@dataclass(frozen=True)
class StepsBlock:
    """Steps drawn as boxes with arrows.

    label: text for screen readers that says what the path shows.
    """

    label: str
    steps: tuple[PathStep, ...]

    template: ClassVar[str] = "steps.html"


@dataclass(frozen=True)
class MarkedWord:
    """A word of a passage.

    kind: a name in the legend, or "" for plain text.
    note: small text after the word.
    joined: there is no blank before the word, because it continues the word before it.
    """

    text: str
    kind: str = ""
    note: str = ""
    joined: bool = False


@dataclass(frozen=True)
class Passage:
    """A text in titled parts, such as the segments of an example.

    facts: lines below the text.
    """

    title: str
    parts: tuple[tuple[str, tuple[MarkedWord, ...]], ...]
    facts: tuple[str, ...] = ()


@dataclass(frozen=True)
class PassagesBlock:
    """Passages with a search field and pages.

    legend: pairs of a word's ``kind`` and its meaning. The style sheet knows the kinds masked, random, kept
    and special.
    page_rows: number of passages on a page.
    """

    label: str
    legend: tuple[tuple[str, str], ...]
    passages: tuple[Passage, ...]
    page_rows: int = 20

    template: ClassVar[str] = "passages.html"


@dataclass(frozen=True)
class SideBySide:
    """Blocks in columns, if the window is wide enough.

    columns: pairs of a heading and the column's blocks.
    """

    columns: tuple[tuple[str, Sequence[PageContent]], ...]

    template: ClassVar[str] = "side_by_side.html"
