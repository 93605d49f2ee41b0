"""Extracts blocks of pages in workers, and checks each result when the state before its block is known."""

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
    """Extract the articles of a block of pages. This function runs in a worker.

    state: values that the extractor carries over from the pages before the block.
    """
    if block.skipped is not None:
        return BlockArticles(b"", [], None, state)
    found = open_extractor(settings).extract(block.data, state)
    return found._replace(revisions=count_revisions(block.data, settings.engine))


def find_block_definitions(
    settings: ExtractorSettings, state: BlockState, block: PageBlock
) -> BlockDefinitions:
    """Collect the template definitions in a block of pages. This function runs in a worker.

    state: values that the extractor carries over from the pages before the block.
    """
    return open_extractor(settings).definitions(block.data, state)


def extract_blocks(
    blocks: Iterable[PageBlock], settings: ExtractorSettings, pool: WorkerPool, state: BlockState
) -> Iterator[tuple[PageBlock, BlockArticles, BlockState]]:
    """Extract blocks in parallel. Yields each block in order, with its articles and the state before it.

    state: state before the first block (see ``BlockState``).
    """
    # Blocks are extracted in parallel, so a worker does not know the state before its block. It extracts the
    # block as if the dump started there. This is nearly always right. Where it is wrong, the block is
    # extracted again with the true state, which is known when the results of all earlier blocks are there.
    for block, found in pool.in_order(partial(extract_block, settings, START), blocks):
        if not is_result_valid(block.data, found, state):
            [(_, found)] = pool.in_order(partial(extract_block, settings, state), [block])
        yield block, found, state
        state = find_state_after(found, state)


def find_definitions(
    blocks: Iterable[PageBlock], settings: ExtractorSettings, pool: WorkerPool, state: BlockState = START
) -> Iterator[tuple[PageBlock, BlockDefinitions]]:
    """Collect template definitions in parallel. Yields each block in order, with its definitions.

    state: state before the first block (see ``BlockState``).
    """
    for block, found in pool.in_order(partial(find_block_definitions, settings, START), blocks):
        if not is_result_valid(block.data, found, state):
            [(_, found)] = pool.in_order(partial(find_block_definitions, settings, state), [block])
        yield block, found
        state = find_state_after(found, state)


class PackagePages:
    """Extractor for single pages that the C++ kernel cannot handle, which uses the package wikiextractor.

    The package runs in a separate process with limits on its time and memory. The process is started for the
    first such page.
    """

    def __init__(self, settings: ExtractorSettings) -> None:
        self._settings = settings
        self._open = ExitStack()
        self._pool: ProcessPool | None = None

    def extract_unknown(self, block: PageBlock, found: BlockArticles) -> tuple[BlockArticles, int]:
        """Extract the pages that the kernel marked as UNKNOWN, and insert their articles into the block's
        result.

        found: the kernel's result for the block.

        Returns the completed result, and the number of these pages.
        """
        unknown = sum(outcome.reason == UNKNOWN for outcome in found.outcomes)
        if not unknown:
            return found, 0
        # In the kernel's result, the articles are concatenated, and each outcome has the size of its article
        # (0 if there is none). Cut the articles apart, and insert the package's articles where the kernel has
        # left them out.
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
        """Extract a page with the package, and return its article and its outcome.

        unknown: the kernel's outcome for the page, with the position of the page in the block.
        """
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
