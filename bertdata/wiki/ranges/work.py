"""Collects template definitions from a range of a dump, or extracts its articles.

This is the work of a worker.

The definitions or articles are written to a file, and a small summary is returned. A range is processed as if
the dump started there. When the true state before the range is known, the summary shows whether the result is
right.
"""

from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bertdata.io import storage
from bertdata.io.worker_process import WorkerDied
from bertdata.wiki.articles.report import ExtractReport
from bertdata.wiki.articles.writer import is_empty, is_multi_revision_article, skip_page
from bertdata.wiki.block_work import PackagePages, extract_blocks, find_definitions
from bertdata.wiki.dump.dump import PageBlock
from bertdata.wiki.dump.revisions import find_newest_day
from bertdata.wiki.extractor import START, BlockArticles, BlockState, ExtractorSettings
from bertdata.wiki.ranges.facts import RangeBlocks, RangeFacts
from bertdata.wiki.ranges.ranges import DumpRanges
from bertdata.wiki.template_file import TemplateFileWriter
from bertdata.wiki.worker_pool import WorkerPool, open_pools


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeDefinitions:
    """Summary of the template definitions in a range.

    facts: facts about the range, which are needed to join the ranges.
    path: path of the template file with the definitions, or None if definitions were not collected.
    pages: number of template pages.
    left_out: ids of template pages that the user asked to leave out.
    newest: day of the newest revision as YYYY-MM-DD, or empty if it was not searched for.
    """

    facts: RangeFacts
    path: str | None
    pages: int
    left_out: tuple[str, ...]
    newest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeArticles:
    """Summary of the articles in a range.

    facts: facts about the range, which are needed to join the ranges.
    path: path of the file with the articles, which are concatenated.
    sizes: size of each article in bytes.
    report: report on the pages of the range. It does not count the output files and their bytes.
    left_out: ids of pages that the user asked to leave out.
    """

    facts: RangeFacts
    path: str
    sizes: "array[int]"
    report: ExtractReport
    left_out: tuple[str, ...]


def collect_definitions(
    ranges: DumpRanges,
    number: int,
    settings: ExtractorSettings,
    path: str | None,
    *,
    days: bool,
    state: BlockState = START,
) -> RangeDefinitions:
    """Collect the template definitions in a range of a dump, and write them to a template file.

    ranges: division of the dump into ranges.
    number: number of the range.
    path: path of the template file, or None if definitions are not needed.
    days: whether to search for the newest revision.
    state: state before the range (see ``BlockState``).
    """
    reading = RangeBlocks(ranges, number, settings, state)
    newest, pages, left_out = "", 0, list[str]()
    with TemplateFileWriter() as templates:
        if path is None:
            for block in reading.read_blocks():
                reading.add_block(block)
                newest = max(newest, find_newest_day(block.data))
        else:
            with _open_pool(settings) as pool:
                for block, found in find_definitions(reading.read_blocks(), settings, pool, state):
                    reading.add_block(block, found)
                    for definition in found.definitions:
                        templates.add(*definition)
                    pages += found.pages
                    left_out += found.left_out
                    newest = max(newest, find_newest_day(block.data)) if days else ""
            with storage.open_output(path, flushes=False) as file:
                templates.write(file)
    return RangeDefinitions(
        facts=reading.facts, path=path, pages=pages, left_out=tuple(left_out), newest=newest
    )


def extract_range(
    ranges: DumpRanges, number: int, settings: ExtractorSettings, path: str, *, state: BlockState = START
) -> RangeArticles:
    """Extract the articles in a range of a dump, and write them to a file.

    ranges: division of the dump into ranges.
    number: number of the range.
    path: path of the file.
    state: state before the range (see ``BlockState``).
    """
    reading = RangeBlocks(ranges, number, settings, state)
    sizes = array("Q")
    report, left_out = ExtractReport(), set[str]()
    with (
        storage.open_output(path, flushes=False) as file,
        _open_pool(settings) as pool,
        PackagePages(settings) as package,
    ):
        # All articles of the range are written to the same file. They are distributed over the output files
        # later (``fold.distribute_articles``), because this depends on the sizes of the articles of all
        # ranges.
        for block, found, _ in extract_blocks(reading.read_blocks(), settings, pool, state):
            reading.add_block(block, found)
            if block.skipped is not None:
                report.skip(*block.skipped)
                continue
            found, by_package = package.extract_unknown(block, found)
            report.by_package += by_package
            file.write(found.articles)
            sizes.extend(_count_pages(report, left_out, settings, block, found))
    return RangeArticles(
        facts=reading.facts, path=path, sizes=sizes, report=report, left_out=tuple(sorted(left_out))
    )


@contextmanager
def _open_pool(settings: ExtractorSettings) -> Iterator[WorkerPool]:
    """Open a pool of a single worker. For a kernel, this process is the worker.

    For a Python engine, the worker is a separate process with limits on its time and memory.
    """
    try:
        with open_pools(settings.engine, 1, settings.rules.limits.memory_bytes) as pools:
            yield pools.work
    except WorkerDied as death:
        raise settings.rules.make_error(death) from None


def _count_pages(
    report: ExtractReport,
    left_out: set[str],
    settings: ExtractorSettings,
    block: PageBlock,
    found: BlockArticles,
) -> Iterator[int]:
    """Count the pages of a block in the report, and yield the sizes of its articles.

    left_out: set of page ids. The ids of pages that the user asked to leave out are added.
    found: result of the extractor for the block.
    """
    at, repeats = 0, found.revisions > len(found.outcomes)
    for outcome in found.outcomes:
        begin, at = at, at + outcome.size
        report.several_revisions += repeats and is_multi_revision_article(block, outcome)
        if outcome.reason:
            skip_page(report, left_out, settings.rules, block, outcome)
            continue
        report.pages += 1
        report.written += 1
        report.empty += is_empty(found.articles[begin:at])
        yield outcome.size
