"""A page of HTML: complete, self-contained, and harmless whatever its texts say."""

import re
from html.parser import HTMLParser

import pytest

from bertdata.errors import MissingExtraError, UsageError
from bertdata.reports.charts.line_chart import Line, LineChart
from bertdata.reports.charts.values import DataTable
from bertdata.reports.page.blocks import (
    ChartBlock,
    DrawingBlock,
    MarkedWord,
    Passage,
    PassagesBlock,
    PathStep,
    Prose,
    SideBySide,
    StepsBlock,
)
from bertdata.reports.page.page import ReportPage, ReportSection, check_report, render_page

HOSTILE = (
    "\"'><script>alert(1)</script><img src=http://x/ onerror=alert(1)> \x1b[31m \u202e &amp; {{ 7 * 7 }}"
)


def page_of(text: str) -> ReportPage:
    """Every block, each of its texts the given one."""
    line = Line(text, (1, 2), (1.0, 2.0))
    chart = LineChart(title=text, description=text, x_label=text, y_label=text, lines=(line,))
    table = DataTable(text, (text, text), ((text, 1), (text, None), (text, 0.5)), text, page_rows=2)
    words = (MarkedWord(text), MarkedWord(text, "masked", text))
    passage = Passage(text, ((text, words), ("", words)), (text,))
    blocks = (
        Prose(text),
        table,
        ChartBlock(chart, text),
        DrawingBlock(text, text, "<svg></svg>", table),
        StepsBlock(text, (PathStep(text, ((text, text),), text),)),
        PassagesBlock(text, (("masked", text),), (passage, passage)),
        SideBySide(((text, (Prose(text), table)), (text, (ChartBlock(chart),)))),
    )
    return ReportPage(
        title=text,
        lead=(text,),
        faults=(text,),
        faults_title=text,
        sections=(ReportSection("All", blocks, text),),
    )


class Elements(HTMLParser):
    """The elements of a page and their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def test_hostile_texts_make_no_element_and_no_attribute():
    plain, hostile = (Elements(render_page(page_of(text))) for text in ("plain", HOSTILE))
    assert [(tag, sorted(attributes)) for tag, attributes in plain.found] == [
        (tag, sorted(attributes)) for tag, attributes in hostile.found
    ]
    assert "\x1b" not in hostile.text
    assert "\u202e" not in hostile.text
    assert "{{ 7 * 7 }}" in hostile.text


def test_a_page_refers_to_nothing_outside_of_itself():
    page = render_page(page_of("plain"))
    for tag, attributes in Elements(page).found:
        for name in ("src", "href", "action", "poster", "data"):
            assert re.match(r"(#|data:,$)", attributes.get(name) or "#"), (tag, attributes)
    assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org/2000/svg)", page)
    assert "default-src 'none'" in page


def test_identifiers_are_unique_and_each_reference_has_its_target():
    found = Elements(render_page(page_of("plain"))).found
    identifiers = [attributes["id"] for _, attributes in found if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    for _, attributes in found:
        for name in ("aria-labelledby", "aria-describedby", "aria-controls", "data-copies"):
            assert set((attributes.get(name) or "").split()) <= set(identifiers)
        if (attributes.get("href") or "").startswith("#"):
            assert attributes["href"][1:] in identifiers


def test_the_same_records_give_the_same_bytes():
    assert render_page(page_of("plain")) == render_page(page_of("plain"))


def test_a_page_without_faults_has_no_list_of_them():
    page = ReportPage(title="a", sections=(ReportSection("One", (Prose("text"),)),))
    assert 'id="faults"' not in render_page(page)


def test_names_and_packages_are_checked_before_the_work(monkeypatch):
    with pytest.raises(UsageError, match=r"a.pdf: expected a name that ends in .html"):
        check_report("a.pdf", "bertdata report")
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"bertdata report needs the package jinja2: .*report"):
        check_report("a.html", "bertdata report")
