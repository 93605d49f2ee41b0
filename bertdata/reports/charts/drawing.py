"""Drawing of charts with matplotlib: as a picture file, or as SVG for a page."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from typing import Any

from bertdata.errors import MissingExtraError, UsageError, install_extra
from bertdata.io import storage
from bertdata.io.terminal import escape_unprintable
from bertdata.reports.charts.chart import Chart
from bertdata.reports.charts.colours import LIGHT
from bertdata.reports.charts.inline import convert_to_inline

_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "bertdata"},
    "png": {"Software": "bertdata"},
}
_SETTINGS = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "axes.edgecolor": LIGHT["faint"],
    "axes.labelcolor": LIGHT["ink"],
    "axes.titlecolor": LIGHT["ink"],
    "text.color": LIGHT["ink"],
    "xtick.color": LIGHT["faint"],
    "ytick.color": LIGHT["faint"],
    "xtick.labelcolor": LIGHT["ink"],
    "ytick.labelcolor": LIGHT["ink"],
}


def check_picture(path: str, asked_by: str = "--picture") -> None:
    """Raise an error if a picture cannot be written to this file. This is called before the work begins.

    asked_by: the flag or command that needs the picture, for the error message.

    Raises UsageError for an unknown file ending. Raises MissingExtraError if matplotlib is not installed.
    """
    if path.rpartition(".")[2].lower() not in _METADATA:
        raise UsageError(f"{path}: expected a name that ends in .svg or .png")
    load_matplotlib(asked_by, "pictures")


def write_picture(path: str, charts: Sequence[Chart], asked_by: str = "--picture") -> None:
    """Write charts with their titles to an SVG or PNG file, one below the other.

    With the same version of matplotlib, the same charts give the same bytes. The file contains no date and no
    random identifier, and the user's own settings of matplotlib are not used.

    asked_by: the flag or command that needs matplotlib, for the error message.
    """
    check_picture(path, asked_by)
    picture = _draw_picture(charts, path.rpartition(".")[2].lower(), "bertdata", with_titles=True)
    with storage.open_output(path) as file:
        file.write(picture)


def render_inline_svg(chart: Chart, name: str) -> str:
    """Return the chart as an SVG element for an HTML page, without a title.

    name: name of the chart, which must be unique on the page.
    """
    return convert_to_inline(_draw_picture([chart], "svg", name, with_titles=False), name, chart.tooltips())


def load_matplotlib(asked_by: str, extra: str, module: str = "matplotlib") -> Any:
    """Import a module of matplotlib and return it.

    asked_by: the flag or command that needs it, for the error message.
    extra: the optional dependency of bertdata that installs it.

    Raises MissingExtraError, which says how to install it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{asked_by} needs the package {error.name}: {install_extra(extra)}"
        ) from error


def _draw_picture(charts: Sequence[Chart], kind: str, salt: str, *, with_titles: bool) -> bytes:
    """Return the bytes of a picture of the charts.

    kind: file type, svg or png.
    salt: text from which matplotlib makes the identifiers in SVG.
    """
    picture = BytesIO()
    with _use_fixed_settings(salt):
        figure = _make_figure(charts, with_titles)
        transparent = not with_titles
        figure.savefig(picture, format=kind, dpi=150, metadata=_METADATA[kind], transparent=transparent)
    return picture.getvalue()


def _make_figure(charts: Sequence[Chart], with_titles: bool) -> Any:
    """Return matplotlib's Figure with Axes for each chart.

    with_titles: True for a picture file. False for a page, which shows the titles itself.

    It is made without pyplot, which would choose a backend for the whole process.
    """
    width, height = charts[0].size_inches if with_titles else charts[0].page_size_inches
    figure = import_module("matplotlib.figure").Figure(
        figsize=(width, height * len(charts)), layout="constrained"
    )
    panels = figure.subplots(len(charts), squeeze=False)[:, 0]
    for panel, chart in zip(panels, charts, strict=True):
        chart.draw(panel)
        if with_titles:
            panel.set_title(chart.title)
    for text in figure.findobj(import_module("matplotlib.text").Text):
        text.set_text(escape_unprintable(text.get_text()))
    return figure


@contextmanager
def _use_fixed_settings(salt: str) -> Iterator[None]:
    """Return a context manager in which matplotlib uses its defaults and our settings instead of the user's.

    salt: text from which matplotlib makes the identifiers in SVG.
    """
    matplotlib = load_matplotlib("a picture", "pictures")
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Glyph .* missing from", UserWarning
        )  # warnings about missing characters do not matter, because the fonts of the viewer have them
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**_SETTINGS, "svg.hashsalt": salt})
        yield
