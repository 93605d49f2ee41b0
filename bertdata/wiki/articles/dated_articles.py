"""The articles at the begin of a dump as they are on any day: only those that name it are rendered again."""

import datetime
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bertdata._native import Engine
from bertdata.wiki.articles.files import starts_file
from bertdata.wiki.articles.report import ExtractReport
from bertdata.wiki.block_work import PackagePages, articles_of, extract_block
from bertdata.wiki.dump.dump import PageBlock
from bertdata.wiki.dump.kept_blocks import KeptBlocks
from bertdata.wiki.dump.passes import DumpPasses, OnProgress
from bertdata.wiki.extractor import START, BlockArticles, ExtractorSettings
from bertdata.wiki.open_extractor import check_engine, forget_extractors
from bertdata.wiki.page_rules import LIMITS
from bertdata.wiki.pages import page_title
from bertdata.wiki.settings import ExtractSettings
from bertdata.wiki.worker_pool import open_pools

_NAMES_THE_DAY = re.compile(rb"CURRENT", re.IGNORECASE)
_CALLS_A_TEMPLATE = re.compile(rb"\{\{")


@dataclass(kw_only=True)
class DatedArticles:
    """The articles at a dump's begin, on the first day that was tried and on any other.

    file_sizes: of the complete files. pages: those that may say something else on another day, by the
    article's place: without templates the
    pages with a word that begins with ``CURRENT``, with templates all that call one.
    """

    settings: ExtractorSettings
    package: PackagePages
    articles: list[bytes] = field(default_factory=list)
    file_sizes: list[int] = field(default_factory=list)
    pages: dict[int, bytes] = field(default_factory=dict)
    _growing: int = 0

    @property
    def first_day(self) -> datetime.date:
        assert self.settings.day is not None
        return self.settings.day

    def on(self, day: datetime.date) -> list[bytes]:
        """All articles as they are on the day."""
        settings = self.settings._replace(day=day)
        articles = list(self.articles)
        for place, page in self.pages.items():
            block = PageBlock(data=page + b"\n", begin=0, position=0)
            found, _ = self.package.completed(block, extract_block(settings, START, block))
            articles[place] = found.articles
        return articles

    def titles(self) -> list[str]:
        """The titles of the pages that may depend on the day."""
        return [page_title(page) for page in self.pages.values()]

    def add(self, block: PageBlock, found: BlockArticles) -> None:
        """Take the articles of the next block."""
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
def first_articles(
    dump: str,
    settings: ExtractSettings,
    has_enough: Callable[[list[int]], bool],
    *,
    engine: Engine | None = None,
    workers: int = 1,
    progress: OnProgress | None = None,
) -> Iterator[DatedArticles]:
    """The articles at the dump's begin. Nothing is written but temporary files.

    has_enough: asked with the sizes of the complete files. With templates the whole dump is read for them.
    Errors as from extract.
    """
    engine = check_engine(settings.extractor, engine)
    with (
        tempfile.TemporaryDirectory() as directory,
        open_pools(engine, workers, LIMITS.memory_bytes) as pools,
        DumpPasses(dump, settings, engine, pools, LIMITS, progress) as passes,
        KeptBlocks(directory, passes.bytes) as kept,
    ):
        found, _ = passes.first_pass(directory, kept, ExtractReport(), set())
        with PackagePages(found) as package:
            articles = DatedArticles(settings=found, package=package)
            with passes.open() as opened:
                blocks = iter(kept) if kept.complete else opened.blocks()
                for block, result, _ in articles_of(blocks, found, pools.work, START):
                    articles.add(block, package.completed(block, result)[0])
                    passes.tell("articles", block.position)
                    if has_enough(articles.file_sizes):
                        break
            try:
                yield articles
            finally:
                forget_extractors()


def cut_into_files(articles: Iterable[bytes]) -> list[bytes]:
    """The articles as files. The last one may be incomplete."""
    files: list[list[bytes]] = [[]]
    size = 0
    for article in articles:
        if starts_file(size, len(article)):
            files.append([])
            size = 0
        files[-1].append(article)
        size += len(article)
    return [b"".join(file) for file in files]
