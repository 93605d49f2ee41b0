"""Extract blocks of pages in workers, and check each result against the state after the block before."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial

from bertdata.io.process_pool import ProcessPool
from bertdata.io.worker_process import WorkerDied
from bertdata.wiki.dump.dump import PageBlock
from bertdata.wiki.dump.revisions import count_revisions
from bertdata.wiki.extractor import (
    START,
    BlockArticles,
    BlockDefinitions,
    BlockState,
    ExtractorSettings,
    PageOutcome,
    find_state_after,
    is_result_valid,
)
from bertdata.wiki.open_extractor import open_extractor
from bertdata.wiki.pages import UNKNOWN
from bertdata.wiki.worker_pool import WorkerPool


def extract_block(settings: ExtractorSettings, state: BlockState, block: PageBlock) -> BlockArticles:
    """Extract the articles of a block of pages. Called in a worker.

    state: values that the extractor carries over from the pages before the block.
    """
    if block.skipped is not None:
        return BlockArticles(b"", [], None, state)
    found = open_extractor(settings).extract(block.data, state)
    return found._replace(revisions=count_revisions(block.data, settings.engine))


def find_block_definitions(
    settings: ExtractorSettings, state: BlockState, block: PageBlock
) -> BlockDefinitions:
    """Collect the template definitions in a block of pages. Called in a worker.

    state: values that the extractor carries over from the pages before the block.
    """
    return open_extractor(settings).definitions(block.data, state)


def extract_blocks(
    blocks: Iterable[PageBlock], settings: ExtractorSettings, pool: WorkerPool, state: BlockState
) -> Iterator[tuple[PageBlock, BlockArticles, BlockState]]:
    """Extract blocks in parallel, and yield each block in order with its articles and the state before it.

    state: state at the start of the first block.
    """
    # Blocks are extracted in parallel, so the state at a block's start is not known. All are extracted as if
    # they were at the start of the dump. That is nearly always right. Where it is wrong, the block is
    # extracted again from the state after the block before.
    for block, found in pool.in_order(partial(extract_block, settings, START), blocks):
        if not is_result_valid(block.data, found, state):
            [(_, found)] = pool.in_order(partial(extract_block, settings, state), [block])
        yield block, found, state
        state = find_state_after(found, state)


def find_definitions(
    blocks: Iterable[PageBlock], settings: ExtractorSettings, pool: WorkerPool, state: BlockState = START
) -> Iterator[tuple[PageBlock, BlockDefinitions]]:
    """Collect template definitions in parallel, and yield each block in order with its definitions.

    state: state at the start of the first block.
    """
    for block, found in pool.in_order(partial(find_block_definitions, settings, START), blocks):
        if not is_result_valid(block.data, found, state):
            [(_, found)] = pool.in_order(partial(find_block_definitions, settings, state), [block])
        yield block, found
        state = find_state_after(found, state)


class PackagePages:
    """Fallback for pages that the C++ kernel cannot handle: the package wikiextractor in a separate process.

    The process is started for the first such page, and its time and memory are limited.
    """

    def __init__(self, settings: ExtractorSettings) -> None:
        self._settings = settings
        self._open = ExitStack()
        self._pool: ProcessPool | None = None

    def extract_unknown(self, block: PageBlock, found: BlockArticles) -> tuple[BlockArticles, int]:
        """Extract the pages that the kernel marked as UNKNOWN, and add their articles to the block's result.

        Returns the completed result, and the number of these pages.
        """
        unknown = sum(outcome.reason == UNKNOWN for outcome in found.outcomes)
        if not unknown:
            return found, 0
        # The articles are concatenated, and each outcome has the size of its article (0 for a skipped page).
        # Cut them apart, and put the package's article where the kernel left a gap.
        pieces, outcomes, at = [], [], 0
        for outcome in found.outcomes:
            piece = found.articles[at : at + outcome.size]
            at += outcome.size
            if outcome.reason == UNKNOWN:
                piece, outcome = self._extract_page(block, outcome)
            pieces.append(piece)
            outcomes.append(outcome)
        return found._replace(articles=b"".join(pieces), outcomes=outcomes), unknown

    def _extract_page(self, block: PageBlock, unknown: PageOutcome) -> tuple[bytes, PageOutcome]:
        if self._pool is None:
            memory = self._settings.rules.limits.memory_bytes
            self._pool = self._open.enter_context(ProcessPool(1, apart=True, memory_bytes=memory))
        page = block._replace(data=block.data[unknown.begin : unknown.end])
        settings = self._settings._replace(engine="python")
        try:
            [(_, found)] = self._pool.in_order(partial(extract_block, settings, START), [page])
        except WorkerDied as death:
            raise settings.rules.make_error(death) from None
        (outcome,) = found.outcomes
        return found.articles, outcome._replace(begin=unknown.begin, end=unknown.end)

    def __enter__(self) -> "PackagePages":
        return self

    def __exit__(self, *failure: object) -> None:
        self._open.__exit__(*failure)  # type: ignore[arg-type]
