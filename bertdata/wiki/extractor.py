"""Interface of an extractor, which turns blocks of whole pages into articles or template definitions.

There are four extractors, chosen by ``open_extractor``. They reproduce two programs, wikiextractor 3.1.0 and
the version that MLPerf pins. Each has a C++ kernel and a Python engine: the package itself for 3.1.0, a
readable twin for MLPerf's.

Blocks are extracted in any order, each as if it were at the start of the dump. A page's result depends on
earlier pages in a few small ways (``BlockState``). So every result is checked before it is used, and the
block is extracted again in the rare case that the assumption was wrong.
"""

import datetime
import re
from typing import NamedTuple, Protocol

from bertdata._native import Engine
from bertdata.wiki.dump.site import SiteInfo
from bertdata.wiki.page_rules import PageRules
from bertdata.wiki.settings import ExtractorName


class BlockState(NamedTuple):
    """State of reading at the start of a block.

    namespace, redirect, inside_text: values that MLPerf's extractor carries from page to page.
    last_id: page id of the article before. A page that repeats this id is skipped.
    """

    namespace: str
    redirect: bool
    inside_text: bool
    last_id: str | None


_USUAL_BEGIN = rb"\s*<page>\s*<title>[^<\n]*</title>\s*\n[ \t]*<ns>"

START = BlockState("0", False, False, None)
"""State at the start of a dump. Each block is first extracted with it."""


class PageOutcome(NamedTuple):
    """What became of a page: an article, or a reason for skipping it.

    reason: empty for an article, else a constant of ``pages``.
    detail: page id of an article, or more about the reason.
    size: bytes of the article.
    begin, end: position of the page in its block.
    """

    reason: str
    detail: str
    size: int
    begin: int
    end: int


class BlockArticles(NamedTuple):
    """Articles of a block.

    articles: the articles, concatenated.
    outcomes: outcome of each page.
    first_id: id of the first page that may be an article.
    exit: state after the block.
    revisions: number of revisions of all pages. It exceeds the number of pages only in a dump with histories.
    """

    articles: bytes
    outcomes: list[PageOutcome]
    first_id: str | None
    exit: BlockState
    revisions: int = 0


class BlockDefinitions(NamedTuple):
    """Template definitions in a block.

    definitions: kind ("template" or "redirect"), title and text of each.
    pages: number of template pages.
    left_out: ids of template pages that the user left out.
    first_id, exit: as in BlockArticles.
    """

    definitions: list[tuple[str, bytes, bytes]]
    pages: int
    left_out: list[str]
    first_id: str | None
    exit: BlockState


class Extractor(Protocol):
    """Turns the pages of a block into articles or definitions. The result does not depend on the engine."""

    def extract(self, data: bytes, state: BlockState, /) -> BlockArticles: ...

    def definitions(self, data: bytes, state: BlockState, /) -> BlockDefinitions: ...


class ExtractorSettings(NamedTuple):
    """Everything that a worker needs besides the pages.

    templates: path of the template file, or None.
    """

    extractor: ExtractorName
    engine: Engine
    site: SiteInfo
    day: datetime.date | None
    templates: str | None
    max_page_bytes: int
    rules: PageRules


def is_result_valid(data: bytes, result: BlockArticles | BlockDefinitions, state: BlockState) -> bool:
    """Return True if a result made with START equals the result that ``state`` would give.

    The first page must not repeat the id of the article before. If ``state`` also differs otherwise, the
    block must not start inside the text of an unclosed page, and its first page must state its namespace, as
    pages written by MediaWiki do. The redirect needs no test, because ``<page>`` resets it.
    """
    if state.last_id is not None and state.last_id == result.first_id:
        return False
    return state[:3] == START[:3] or (not state.inside_text and has_usual_begin(data))


def has_usual_begin(data: bytes) -> bool:
    """Return True if the block's first page states its namespace, as pages written by MediaWiki do."""
    return re.match(_USUAL_BEGIN, data) is not None


def find_state_after(result: BlockArticles | BlockDefinitions, state: BlockState) -> BlockState:
    """Return the state after a block.

    state: the state before it. The result must have been made with this state, or with START if it follows.
    """
    last_id = state.last_id if result.exit.last_id is None else result.exit.last_id
    return result.exit._replace(last_id=last_id)
