"""The interface of an extractor. ``open_extractor`` has the four that there are.

An extractor turns blocks of whole pages into articles, and collects the definitions of templates. There
are two programs to be equal to, wikiextractor 3.1.0 and MLPerf's pinned one, and two engines for each:
C++ kernels, and Python (the package itself, and a readable twin).

Blocks are extracted in any order, each as if it stood first; what a page does depends on the pages before
it in two small ways (``BlockState``), so that a result is checked before it is used, and made again in the
rare case that it does not follow.
"""

import datetime
import re
from typing import NamedTuple, Protocol

from bertdata._native import Engine
from bertdata.wiki.dump.site import SiteInfo
from bertdata.wiki.page_rules import PageRules
from bertdata.wiki.settings import ExtractorName


class BlockState(NamedTuple):
    """State of reading at the begin of a block.

    namespace, redirect, inside_text: of MLPerf's reader, which carries them from page to page.
    last_id: of the article before; the same id again is passed over.
    """

    namespace: str
    redirect: bool
    inside_text: bool
    last_id: str | None


_USUAL_BEGIN = rb"\s*<page>\s*<title>[^<\n]*</title>\s*\n[ \t]*<ns>"

START = BlockState("0", False, False, None)
"""The state at the begin of a dump, and the one that each block is first extracted with."""


class PageOutcome(NamedTuple):
    """The outcome of a page: an article, or a reason why it is none.

    reason: empty for an article, else one of ``pages``'s. detail: the article's page id, or more about
    the reason. size: bytes of the article. begin, end: where the page lies in its block.
    """

    reason: str
    detail: str
    size: int
    begin: int
    end: int


class BlockArticles(NamedTuple):
    """The articles of a block, one after another, and an outcome for each of its pages.

    first_id: of the first page that could be an article; exit: the state behind the block. revisions: of
    all its pages, as many as pages in a dump that is none of histories.
    """

    articles: bytes
    outcomes: list[PageOutcome]
    first_id: str | None
    exit: BlockState
    revisions: int = 0


class BlockDefinitions(NamedTuple):
    """The definitions of templates in a block: kind (template or redirect), title and text of each.

    pages: template pages met; left_out: ids of those that were to be left out.
    """

    definitions: list[tuple[str, bytes, bytes]]
    pages: int
    left_out: list[str]
    first_id: str | None
    exit: BlockState


class Extractor(Protocol):
    """Pages of a block to articles or definitions. Equal results whatever the engine."""

    def extract(self, data: bytes, state: BlockState, /) -> BlockArticles: ...

    def definitions(self, data: bytes, state: BlockState, /) -> BlockDefinitions: ...


class ExtractorSettings(NamedTuple):
    """Everything that a worker needs besides the pages. ``templates`` is the path of the template file."""

    extractor: ExtractorName
    engine: Engine
    site: SiteInfo
    day: datetime.date | None
    templates: str | None
    max_page_bytes: int
    rules: PageRules


def follows(data: bytes, result: BlockArticles | BlockDefinitions, state: BlockState) -> bool:
    """True if the result of a block that was begun with START is that of one begun with the state.

    A block whose first page says its namespace, as those of MediaWiki do, does not depend on the one
    before it; ``<page>`` ends a redirect.
    """
    if state.last_id is not None and state.last_id == result.first_id:
        return False
    return state[:3] == START[:3] or (not state.inside_text and has_usual_begin(data))


def has_usual_begin(data: bytes) -> bool:
    """True if the block's first page says its own namespace, as those of MediaWiki do."""
    return re.match(_USUAL_BEGIN, data) is not None


def state_behind(result: BlockArticles | BlockDefinitions, state: BlockState) -> BlockState:
    """The state behind a block that was begun with the state, or with START, and follows it."""
    last_id = state.last_id if result.exit.last_id is None else result.exit.last_id
    return result.exit._replace(last_id=last_id)
