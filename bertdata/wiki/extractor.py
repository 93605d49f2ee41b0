"""Interface of an extractor, which turns blocks of whole pages into articles or template definitions.

There are four extractors, from which ``open_extractor`` chooses. They reproduce two programs: wikiextractor
3.1.0, and the older wikiextractor that MLPerf uses. For each program there are a C++ kernel and a Python
engine. The Python engine for 3.1.0 is the package itself, and the Python engine for MLPerf's version is a
readable twin of the kernel.

Blocks are extracted in any order, and each as if the dump started there. In a few rare ways the result for a
page depends on earlier pages (see ``BlockState``). Every result is therefore checked before it is used. If
the true state before the block would change the result, the block is extracted again.
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

    namespace: value of the last ``<ns>``. Only MLPerf's extractor carries it over.
    redirect: whether a ``<redirect>`` was seen. Only MLPerf's extractor carries it over.
    inside_text: whether the block starts inside ``<text>``. Only MLPerf's extractor carries it over.
    last_id: page id of the last article, or None. A page with the same id is skipped.
    """

    namespace: str
    redirect: bool
    inside_text: bool
    last_id: str | None


_USUAL_BEGIN = rb"\s*<page>\s*<title>[^<\n]*</title>\s*\n[ \t]*<ns>"

START = BlockState("0", False, False, None)
"""State at the start of a dump. Each block is first extracted as if this were the state before it."""


class PageOutcome(NamedTuple):
    """Result for a page: an article, or the reason why there is none.

    reason: empty for an article, otherwise a constant of ``bertdata.wiki.pages`` such as REDIRECT.
    detail: id of the page if it is an article, otherwise details about the reason.
    size: size of the article in bytes, 0 if there is none.
    begin, end: position of the page in its block.
    """

    reason: str
    detail: str
    size: int
    begin: int
    end: int


class BlockArticles(NamedTuple):
    """Result of extracting the articles of a block of pages.

    articles: the articles, concatenated.
    outcomes: result for each page of the block.
    first_id: id of the first page that may be an article, or None.
    exit: state after the block, for the next block.
    revisions: number of revisions of all pages. It is larger than the number of pages only if the dump has
        page histories.
    """

    articles: bytes
    outcomes: list[PageOutcome]
    first_id: str | None
    exit: BlockState
    revisions: int = 0


class BlockDefinitions(NamedTuple):
    """Result of collecting the template definitions in a block of pages.

    definitions: kind ("template" or "redirect"), title and text of each definition.
    pages: number of template pages.
    left_out: ids of template pages that the user asked to leave out.
    first_id: id of the first page that may be an article, or None.
    exit: state after the block, for the next block.
    """

    definitions: list[tuple[str, bytes, bytes]]
    pages: int
    left_out: list[str]
    first_id: str | None
    exit: BlockState


class Extractor(Protocol):
    """Interface of an extractor, which turns a block of pages into articles or template definitions.

    If a C++ kernel and a Python engine reproduce the same program, they give the same results.
    """

    def extract(self, data: bytes, state: BlockState, /) -> BlockArticles: ...

    def definitions(self, data: bytes, state: BlockState, /) -> BlockDefinitions: ...


class ExtractorSettings(NamedTuple):
    """Settings that a worker needs to extract pages.

    site: name of the site and its namespaces, from the dump's <siteinfo>.
    day: day that replaces ``{{CURRENTDAY}}`` and similar words. None if it is not known or not needed yet.
    templates: path of the file with all template definitions (see ``template_file``), or None.
    max_page_bytes: a page with more bytes of XML is skipped.
    rules: which pages are left out, and the limits for all others.
    """

    extractor: ExtractorName
    engine: Engine
    site: SiteInfo
    day: datetime.date | None
    templates: str | None
    max_page_bytes: int
    rules: PageRules


def is_result_valid(data: bytes, result: BlockArticles | BlockDefinitions, state: BlockState) -> bool:
    """Return True if the result for a block is right, although the block was extracted as if the dump started
    there.

    data: XML of the block.
    result: result for the block.
    state: true state before the block.

    Two things can make the result wrong. First, the first page may have the same id as the last article
    before the block. Second, MLPerf's extractor may carry over a value. This matters if the block starts
    inside the text of a page that was not closed, or if its first page does not state its namespace.
    MediaWiki always writes the namespace. It does not matter if a redirect is carried over, because
    ``<page>`` resets it.
    """
    if state.last_id is not None and state.last_id == result.first_id:
        return False
    return state[:3] == START[:3] or (not state.inside_text and states_namespace(data))


def states_namespace(data: bytes) -> bool:
    """Return True if the first page of a block states its namespace, as in all dumps that MediaWiki
    writes.
    """
    return re.match(_USUAL_BEGIN, data) is not None


def find_state_after(result: BlockArticles | BlockDefinitions, state: BlockState) -> BlockState:
    """Return the state after a block.

    result: result for the block.
    state: state before the block. ``is_result_valid`` must have returned True for the result and this state.
    """
    last_id = state.last_id if result.exit.last_id is None else result.exit.last_id
    return result.exit._replace(last_id=last_id)
