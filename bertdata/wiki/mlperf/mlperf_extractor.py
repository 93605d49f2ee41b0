"""Turns blocks of pages into articles and template definitions, as the WikiExtractor that MLPerf uses
does.
"""

import datetime
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bertdata.wiki.mlperf.article import format_article, render_lines
from bertdata.wiki.mlperf.definitions import read_definition
from bertdata.wiki.mlperf.expansion import Expander, Site
from bertdata.wiki.mlperf.magic_words import make_magic_words
from bertdata.wiki.mlperf.reading import PageFields, PageReader, State
from bertdata.wiki.mlperf.template_table import TemplateTable
from bertdata.wiki.mlperf.work import LimitError, TooDeepError, Work
from bertdata.wiki.pages import BAD_UTF8, CUT_OFF, DUPLICATE, FAILED, LEFT_OUT_PAGE, REDIRECT, TOO_LARGE

_DEFINING = ("10", "828")
_PYTHON_FRAMES = 20_000
"""Python's recursion limit while pages are rendered. It is far more than MAX_FRAMES nested calls need."""

Outcome = tuple[str, str, int, int, int]
"""Result for a page, with the fields of ``PageOutcome``.

These are the reason (empty for an article), details, the size of the article in bytes, and the start and end
of the page in the block.
"""

Definition = tuple[str, bytes, bytes]
"""A template definition: its kind (always "template"), and its title and text in UTF-8."""


class MlperfExtractor:
    """Readable version of the WikiExtractor that MLPerf uses, with the settings for a dump.

    url_base: start of the URLs of articles.
    namespaces: name and number of each namespace.
    day: day that replaces ``{{CURRENTDAY}}`` and similar words, as YYYY-MM-DD.
    templates: content of a template file (see ``template_file``), or None if templates are not expanded.
    skip_pages: ids of pages to leave out.
    max_work: most work on a page, in bytes that are scanned or copied.
    """

    def __init__(
        self,
        *,
        url_base: str,
        namespaces: list[tuple[str, str]],
        template_namespace: str,
        module_namespace: str,
        day: str,
        templates: Any,
        skip_pages: list[str],
        max_page_bytes: int,
        max_work: int,
    ) -> None:
        self._url_base = url_base
        self._keys = {name: key if key.isdecimal() else "" for name, key in namespaces}
        self._day = datetime.date.fromisoformat(day)
        self._site = Site(
            namespaces=frozenset(self._keys),
            template_prefix=f"{template_namespace}:" if template_namespace else "",
            templates=None if templates is None else TemplateTable(templates),
        )
        self._skip_pages = frozenset(skip_pages)
        self._max_page_bytes = max_page_bytes
        self._max_work = max_work

    def extract(
        self, data: bytes, state: State
    ) -> tuple[bytes, list[Outcome], str | None, tuple[str, bool, bool, str | None]]:
        """Extract the articles of a block of pages.

        data: XML of the block.
        state: state before the block.

        Returns the concatenated articles, the result for each page, the id of the first page that may be an
        article, and the state after the block.
        """
        reader = PageReader(state)
        articles: list[bytes] = []
        outcomes: list[Outcome] = []
        with _raise_recursion_limit():
            for page in reader.read(data):
                reason, detail, article = self._extract_page(page, data)
                if article:
                    articles.append(article)
                outcomes.append((reason, detail, len(article), page.begin, page.end))
        return b"".join(articles), outcomes, reader.first_id, reader.state

    def _extract_page(self, page: PageFields, data: bytes) -> tuple[str, str, bytes]:
        """Extract the article of a page.

        Returns the reason why the page is skipped, details, and the article. The reason is empty if there is
        an article, and the article is empty if the page is skipped.
        """
        reason = self._find_skip_reason(page, data)
        if reason:
            return reason, page.page_id if reason == LEFT_OUT_PAGE else "", b""
        if page.title is None:
            return FAILED, "no title", b""
        if not page.page_id:
            return FAILED, "no id", b""
        try:
            return "", page.page_id, self._render_page(page, page.title)
        except LimitError as error:
            return "limit", str(error), b""
        except TooDeepError as error:
            return FAILED, str(error), b""
        except UnicodeEncodeError:
            return FAILED, "a lone surrogate in its text", b""

    def _find_skip_reason(self, page: PageFields, data: bytes) -> str:
        """Return the reason why a page is skipped, or an empty text if it is an article."""
        # The first reason that applies is reported and counted, so the order matters.
        if page.page_id in self._skip_pages:
            return LEFT_OUT_PAGE
        if not page.closed:
            return CUT_OFF
        if page.end - page.begin > self._max_page_bytes:
            return TOO_LARGE
        if not _is_utf8(data[page.begin : page.end]):
            return BAD_UTF8
        if page.repeated:
            return DUPLICATE
        if page.redirect:
            return REDIRECT
        return "" if page.namespace == "0" else f"namespace {page.namespace}"

    def _render_page(self, page: PageFields, title: str) -> bytes:
        """Render the article of a page, in UTF-8."""
        work = Work(self._max_work)
        expander = Expander(self._site, make_magic_words(title, self._keys, self._day), work)
        lines = render_lines("".join(page.text), expander, work)
        return format_article(page.page_id, title, lines, self._url_base).encode()

    def definitions(
        self, data: bytes, state: State
    ) -> tuple[list[Definition], int, list[str], str | None, tuple[str, bool, bool, str | None]]:
        """Collect the template definitions in a block of pages.

        data: XML of the block.
        state: state before the block.

        Returns the definitions, the number of template pages, the ids of template pages that the user asked
        to leave out, the id of the first page that may be an article, and the state after the block.
        """
        reader = PageReader(state)
        found: list[Definition] = []
        left_out: list[str] = []
        pages = 0
        for page in reader.read(data):
            if not page.is_extracted or page.namespace not in _DEFINING:
                continue
            if page.page_id in self._skip_pages:
                left_out.append(page.page_id)
                continue
            pages += 1
            if self._find_skip_reason(page, data) in (TOO_LARGE, BAD_UTF8) or page.title is None:
                continue
            if text := read_definition("".join(page.text)):
                found.append(("template", page.title.encode(), text.encode("utf-8", "surrogatepass")))
        return found, pages, left_out, reader.first_id, reader.state


def _is_utf8(data: bytes) -> bool:
    """Return True if the data are valid UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@contextmanager
def _raise_recursion_limit() -> Iterator[None]:
    """Raise Python's recursion limit while a block of code runs, so that MAX_FRAMES nested calls are
    possible.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _PYTHON_FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
