"""An HTML page that consists of sections, and the functions that write it."""

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

from bertdata.errors import MissingExtraError, UsageError, install_extra
from bertdata.io import storage
from bertdata.io.terminal import escape_unprintable
from bertdata.reports.charts.colours import DARK, LIGHT
from bertdata.reports.charts.drawing import load_matplotlib, render_inline_svg
from bertdata.reports.charts.values import format_full_value, format_value
from bertdata.reports.page.blocks import PageContent

_FOLDER = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class ReportSection:
    """A heading with blocks below it.

    note: a line directly under the heading.
    """

    title: str
    blocks: tuple[PageContent, ...]
    note: str = ""

    @property
    def anchor(self) -> str:
        """The identifier of the section in links. It is the title in lower case with hyphens."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True, kw_only=True)
class ReportPage:
    """An HTML page.

    lead: lines under the title.
    faults: lines in red at the top of the page.
    faults_title: heading of the faults.
    warnings: lines at the top of the page about numbers that are easily misread.
    """

    title: str
    sections: Sequence[ReportSection]
    lead: Sequence[str] = ()
    faults_title: str = "Faults"
    faults: Sequence[str] = ()
    warnings: Sequence[str] = ()


def check_report(path: str, asked_by: str) -> None:
    """Raise an error if a page cannot be written to this file. This is called before the work begins.

    asked_by: the flag or command that needs the page, for the error message.

    Raises UsageError unless the file ending is .html. Raises MissingExtraError if Jinja2 or matplotlib is not
    installed.
    """
    if not path.lower().endswith((".html", ".htm")):
        raise UsageError(f"{path}: expected a name that ends in .html")
    _load_jinja(asked_by)
    load_matplotlib(asked_by, "report")


def write_page(path: str, page: ReportPage) -> None:
    """Write the page as one HTML file."""
    text = render_page(page)
    with storage.open_output(path) as file:
        file.write(text.encode())


def render_page(page: ReportPage) -> str:
    """Return the page's HTML."""
    jinja = _load_jinja("a report")
    from markupsafe import Markup  # markupsafe is installed together with Jinja2

    numbers = count(1)
    environment = jinja.Environment(
        loader=jinja.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: escape_unprintable(value) if type(value) is str else value,
    )
    environment.globals.update(
        new_id=lambda: f"id{next(numbers)}",
        svg_of=lambda chart, name: Markup(render_inline_svg(chart, name)),
        trusted=Markup,
        shown=format_value,
        copied=format_full_value,
        is_number=lambda value: isinstance(value, int | float),
    )
    style, script = _read_template("style.css"), _read_template("page.js")
    text: str = environment.get_template("page.html").render(
        page=page,
        style=Markup(_format_colour_variables() + style),
        script=Markup(script),
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
    )
    return text


def _format_colour_variables() -> str:
    """Return the CSS variables for all colours.

    The colours are light by default, and dark if the browser or a button on the page selects this.
    """
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in colours.items()) for colours in (LIGHT, DARK)
    )
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark)"
        f"{{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}\n"
    )


def _read_template(name: str) -> str:
    """Return the text of a file in ``templates/``."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def _load_jinja(asked_by: str) -> Any:
    """Import Jinja2 and return it. Raises MissingExtraError if it is not installed."""
    try:
        import jinja2
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{asked_by} needs the package {error.name}: {install_extra('report')}"
        ) from error
    return jinja2
