"""Interface of an extractor, which turns blocks of whole pages into articles or template definitions.

There are four extractors, chosen by ``open_extractor``. They reproduce two programs, wikiextractor 3.1.0 and
the version that MLPerf pins. Each has a C++ kernel and a Python engine: the package itself for 3.1.0, a
readable twin for MLPerf's.

Blocks are extracted in any order, each as if it were at the start of the dump. A page's result depends on
earlier pages in a few small ways (``BlockState``). So every result is checked before it is used. In the rare
case that the block's true start state would change the result, the block is extracted again.
"""

import datetime
import re
from typing import NamedTuple, Protocol

from bertdata._native import Engine
from bertdata.wiki.dump.site import SiteInfo
from bertdata.wiki.page_rules import PageRules
from bertdata.wiki.settings import ExtractorName


class BlockState(NamedTuple):
    """Values that an extractor carries over from the pages before a block.

    namespace, redirect, inside_text: last ``<ns>`` value, whether a ``<redirect>`` was seen, and whether the
        block starts inside ``<text>``. Only MLPerf's extractor carries these over.
    last_id: page id of the last article. A page that repeats this id is skipped.
    """

    namespace: str
    redirect: bool
    inside_text: bool
    last_id: str | None


_USUAL_BEGIN = rb"\s*<page>\s*<title>[^<\n]*</title>\s*\n[ \t]*<ns>"

START = BlockState("0", False, False, None)
"""State at the start of a dump. Each block is first extracted as if it started in this state."""


class PageOutcome(NamedTuple):
    """Result for one page: an article, or the reason why there is none.

    reason: empty for an article, else a constant of ``bertdata.wiki.pages`` such as REDIRECT.
    detail: page id of an article, or details about the reason.
    size: bytes of the article, 0 if there is none.
    begin, end: position of the page in its block.
    """

    reason: str
    detail: str
    size: int
    begin: int
    end: int


class BlockArticles(NamedTuple):
    """Articles extracted from a block of pages.

    articles: the articles, concatenated.
    outcomes: result for each page of the block.
    first_id: id of the first page that may be an article, or None.
    exit: state to carry over to the next block.
    revisions: number of revisions of all pages. It exceeds the number of pages only in a dump with histories.
    """

    articles: bytes
    outcomes: list[PageOutcome]
    first_id: str | None
    exit: BlockState
    revisions: int = 0


class BlockDefinitions(NamedTuple):
    """Template definitions in a block.

    definitions: kind ("template" or "redirect"), title and text of each definition.
    pages: number of template pages.
    left_out: ids of template pages that the user left out.
    first_id: id of the first page that may be an article, or None.
    exit: state to carry over to the next block.
    """

    definitions: list[tuple[str, bytes, bytes]]
    pages: int
    left_out: list[str]
    first_id: str | None
    exit: BlockState


class Extractor(Protocol):
    """Program that turns a block of pages into articles or template definitions.

    A C++ kernel and a Python engine for the same program give the same result.
    """

    def extract(self, data: bytes, state: BlockState, /) -> BlockArticles: ...

    def definitions(self, data: bytes, state: BlockState, /) -> BlockDefinitions: ...


class ExtractorSettings(NamedTuple):
    """Everything that a worker needs to extract pages.

    site: site name and namespaces from the dump's <siteinfo>.
    day: day that ``{{CURRENTDAY}}`` and similar words expand to. None if it is not known or needed yet.
    templates: path of the template file (see ``template_file``), or None.
    max_page_bytes: a page with more bytes of XML is skipped.
    rules: pages to leave out, and limits of the work on a page.
    """

    extractor: ExtractorName
    engine: Engine
    site: SiteInfo
    day: datetime.date | None
    templates: str | None
    max_page_bytes: int
    rules: PageRules


def is_result_valid(data: bytes, result: BlockArticles | BlockDefinitions, state: BlockState) -> bool:
    """Return True if a block's result is right, although it was extracted as if the dump started there.

    state: true state after the block before.

    Two things can make the result wrong. The first page may repeat the id of the last article. Or MLPerf's
    extractor may carry over a value: this matters if the block starts inside the text of an unclosed page, or
    if its first page does not state its namespace. Pages written by MediaWiki always state it. A redirect
    that is carried over does not matter, because ``<page>`` resets it.
    """
    if state.last_id is not None and state.last_id == result.first_id:
        return False
    return state[:3] == START[:3] or (not state.inside_text and has_usual_begin(data))


def has_usual_begin(data: bytes) -> bool:
    """Return True if the block's first page states its namespace, as pages written by MediaWiki do."""
    return re.match(_USUAL_BEGIN, data) is not None


def find_state_after(result: BlockArticles | BlockDefinitions, state: BlockState) -> BlockState:
    """Return the state to carry over to the next block.

    result: result of the block.
    state: state before the block. ``is_result_valid`` must have returned True for the result and this state.
    """
    last_id = state.last_id if result.exit.last_id is None else result.exit.last_id
    return result.exit._replace(last_id=last_id)
