"""The types of blocks in a section of an HTML page. Each type names the template that shows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from bertdata.reports.charts.chart import Chart
from bertdata.reports.charts.values import DataTable


class PageContent(Protocol):
    """Interface of blocks: any object that has the name of a template."""

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

    note: a line below the chart.
    """

    chart: Chart
    note: str = ""

    template: ClassVar[str] = "chart.html"


@dataclass(frozen=True)
class DrawingBlock:
    """A drawing that our own code made as SVG.

    table: the numbers in the drawing.
    """

    title: str
    description: str
    svg: str
    table: DataTable

    template: ClassVar[str] = "drawing.html"


@dataclass(frozen=True)
class PathStep:
    """A step of a path that is drawn as boxes with arrows.

    details: pairs of a name and a value.
    fault: what is wrong at this step. It is empty if nothing is wrong.
    marked: names of the details whose values differ from the same step of another path.
    """

    title: str
    details: tuple[tuple[str, str], ...] = ()
    fault: str = ""
    marked: frozenset[str] = frozenset()


@dataclass(frozen=True)
class StepsBlock:
    """A path of steps, drawn as boxes with arrows.

    label: text for screen readers that says what the path shows.
    """

    label: str
    steps: tuple[PathStep, ...]

    template: ClassVar[str] = "steps.html"


@dataclass(frozen=True)
class MarkedWord:
    """A word of a passage, with a mark that shows for example that it is masked.

    kind: name of the mark, as in the legend. Empty for a word without a mark.
    note: small text after the word.
    joined: True if there is no blank before the word, because it continues the word before it.
    """

    text: str
    kind: str = ""
    note: str = ""
    joined: bool = False


@dataclass(frozen=True)
class Passage:
    """A text in parts that have titles, such as the segments of an example.

    facts: lines below the text.
    """

    title: str
    parts: tuple[tuple[str, tuple[MarkedWord, ...]], ...]
    facts: tuple[str, ...] = ()


@dataclass(frozen=True)
class PassagesBlock:
    """Several passages (texts with marked words), with a search field.

    legend: pairs of the ``kind`` of a word and its meaning. The style sheet knows the kinds masked, random,
        kept and special.
    page_rows: number of passages that are shown at once.
    """

    label: str
    legend: tuple[tuple[str, str], ...]
    passages: tuple[Passage, ...]
    page_rows: int = 20

    template: ClassVar[str] = "passages.html"


@dataclass(frozen=True)
class SideBySide:
    """Blocks in columns beside each other, if the window is wide enough.

    columns: pairs of the heading and the blocks of a column.
    """

    columns: tuple[tuple[str, Sequence[PageContent]], ...]

    template: ClassVar[str] = "side_by_side.html"


@dataclass(frozen=True)
class Figure:
    """A number that a page shows in large letters.

    label: what the number is.
    value: the number with its unit, as text.
    note: a line below the number, for example what the number should be compared with.
    """

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class FiguresBlock:
    """A few numbers in large letters, beside each other.

    label: text for screen readers that says what the numbers are about.
    """

    label: str
    figures: tuple[Figure, ...]

    template: ClassVar[str] = "figures.html"


@dataclass(frozen=True)
class CommandBlock:
    """A command line or a call of a Python function, with a button that copies it.

    title: a noun phrase above the command.
    lines: the lines of the command. Those of a command line end with a backslash, except the last.
    """

    title: str
    lines: tuple[str, ...]

    template: ClassVar[str] = "command.html"


@dataclass(frozen=True)
class MatrixBlock:
    """A square table of counts whose cells are shaded, for example a confusion matrix.

    caption: a noun phrase.
    row_head: what the rows are, for the first column's heading.
    column_head: what the columns are. It precedes the label in each column's heading.
    counts: for each label of a row, the counts by the labels of the columns.
    note: a line below the table.
    """

    caption: str
    row_head: str
    column_head: str
    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    note: str = ""

    template: ClassVar[str] = "matrix.html"

    def find_shade(self, row: int, column: int) -> int:
        """Return how dark a cell is, from 0 to 5, by its share of the row's sum."""
        total = sum(self.counts[row])
        return round(5 * self.counts[row][column] / total) if total else 0
