"""Extracts the first articles of a dump, and renders them again as they would be on any other day.

With this, the day on which published articles were extracted can be found. Only articles that may contain a
date are rendered again.
"""

import datetime
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bertdata._native import Engine
from bertdata.wiki.articles.files import starts_file
from bertdata.wiki.articles.report import ExtractReport
from bertdata.wiki.block_work import PackagePages, extract_block, extract_blocks
from bertdata.wiki.dump.dump import PageBlock
from bertdata.wiki.dump.kept_blocks import KeptBlocks
from bertdata.wiki.dump.passes import DumpPasses, OnProgress
from bertdata.wiki.extractor import START, BlockArticles, ExtractorSettings
from bertdata.wiki.open_extractor import check_engine, forget_extractors
from bertdata.wiki.page_rules import LIMITS
from bertdata.wiki.pages import read_page_title
from bertdata.wiki.settings import ExtractSettings
from bertdata.wiki.worker_pool import open_pools

_NAMES_THE_DAY = re.compile(rb"CURRENT", re.IGNORECASE)
_CALLS_A_TEMPLATE = re.compile(rb"\{\{")


@dataclass(kw_only=True)
class DatedArticles:
    """The first articles of a dump, which can be rendered again for any day.

    articles: the articles as they are on the day ``settings.day``.
    file_sizes: sizes in bytes of the complete files that these articles fill.
    pages: XML of each page whose article may change with the day, by index in ``articles``. If templates are
        not expanded, these are the pages with a word that starts with ``CURRENT``. If templates are expanded,
        these are all pages that call a template.
    """

    settings: ExtractorSettings
    package: PackagePages
    articles: list[bytes] = field(default_factory=list)
    file_sizes: list[int] = field(default_factory=list)
    pages: dict[int, bytes] = field(default_factory=dict)
    _growing: int = 0

    @property
    def first_day(self) -> datetime.date:
        """Day for which ``articles`` were rendered."""
        assert self.settings.day is not None
        return self.settings.day

    def render_for_day(self, day: datetime.date) -> list[bytes]:
        """Return all articles as they are on a day, which replaces ``{{CURRENTDAY}}`` and similar words."""
        # Render only the pages that may contain the date, and replace their articles.
        settings = self.settings._replace(day=day)
        articles = list(self.articles)
        for place, page in self.pages.items():
            block = PageBlock(data=page + b"\n", begin=0, position=0)
            found, _ = self.package.extract_unknown(block, extract_block(settings, START, block))
            articles[place] = found.articles
        return articles

    def titles(self) -> list[str]:
        """Return the titles of the pages whose articles may change with the day."""
        return [read_page_title(page) for page in self.pages.values()]

    def add(self, block: PageBlock, found: BlockArticles) -> None:
        """Add the articles of the next block of pages.

        found: result of the extractor for the block.
        """
        names_the_day = _NAMES_THE_DAY if self.settings.templates is None else _CALLS_A_TEMPLATE
        at = 0
        for outcome in found.outcomes:
            if not outcome.reason:
                page = block.data[outcome.begin : outcome.end]
                if names_the_day.search(page):
                    self.pages[len(self.articles)] = page
                self.articles.append(found.articles[at : at + outcome.size])
                at += outcome.size
                if starts_file(self._growing, outcome.size):
                    self.file_sizes.append(self._growing)
                    self._growing = 0
                self._growing += outcome.size


@contextmanager
def extract_first_articles(
    dump: str,
    settings: ExtractSettings,
    has_enough: Callable[[list[int]], bool],
    *,
    engine: Engine | None = None,
    workers: int = 1,
    progress: OnProgress | None = None,
) -> Iterator[DatedArticles]:
    """Extract the articles at the start of a dump. Only temporary files are written.

    has_enough: function that is called with the sizes of the complete files so far. The extraction stops when
        it returns True. If templates are expanded, the whole dump is read first to collect them.
    engine: "native" for the C++ kernels, "python" for Python, None for the kernels if they are built.
    workers: number of threads (for the kernels) or processes (for Python).
    progress: function that is called from time to time to show progress.

    Raises InputError for a damaged dump, and for a page that exceeds the limits.
    """
    engine = check_engine(settings.extractor, engine)
    with (
        tempfile.TemporaryDirectory() as directory,
        open_pools(engine, workers, LIMITS.memory_bytes) as pools,
        DumpPasses(dump, settings, engine, pools, LIMITS, progress) as passes,
        KeptBlocks(directory, passes.bytes) as kept,
    ):
        found, _ = passes.run_first_pass(directory, kept, ExtractReport(), set())
        with PackagePages(found) as package:
            articles = DatedArticles(settings=found, package=package)
            with passes.open() as opened:
                blocks = iter(kept) if kept.complete else opened.read_blocks()
                for block, result, _ in extract_blocks(blocks, found, pools.work, START):
                    articles.add(block, package.extract_unknown(block, result)[0])
                    passes.report_progress("articles", block.position)
                    if has_enough(articles.file_sizes):
                        break
            try:
                yield articles
            finally:
                forget_extractors()


def join_into_files(articles: Iterable[bytes]) -> list[bytes]:
    """Distribute articles over files of about a megabyte, and return the content of each file.

    The last file may be incomplete.
    """
    files: list[list[bytes]] = [[]]
    size = 0
    for article in articles:
        if starts_file(size, len(article)):
            files.append([])
            size = 0
        files[-1].append(article)
        size += len(article)
    return [b"".join(file) for file in files]
