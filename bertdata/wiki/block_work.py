"""The work of a worker on one block, and the check that its result follows the block before."""

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
    follows,
    state_behind,
)
from bertdata.wiki.open_extractor import open_extractor
from bertdata.wiki.pages import UNKNOWN
from bertdata.wiki.worker_pool import WorkerPool


def extract_block(settings: ExtractorSettings, state: BlockState, block: PageBlock) -> BlockArticles:
    """The articles of the block, begun with the state."""
    if block.skipped is not None:
        return BlockArticles(b"", [], None, state)
    found = open_extractor(settings).extract(block.data, state)
    return found._replace(revisions=count_revisions(block.data, settings.engine))


def definitions_in_block(
    settings: ExtractorSettings, state: BlockState, block: PageBlock
) -> BlockDefinitions:
    """The definitions in the block, begun with the state."""
    return open_extractor(settings).definitions(block.data, state)


def articles_of(
    blocks: Iterable[PageBlock], settings: ExtractorSettings, pool: WorkerPool, state: BlockState
) -> Iterator[tuple[PageBlock, BlockArticles, BlockState]]:
    """Each block with its articles and the state that it was begun with. ``state`` is that of the first."""
    for block, found in pool.in_order(partial(extract_block, settings, START), blocks):
        if not follows(block.data, found, state):
            [(_, found)] = pool.in_order(partial(extract_block, settings, state), [block])
        yield block, found, state
        state = state_behind(found, state)


def definitions_of(
    blocks: Iterable[PageBlock], settings: ExtractorSettings, pool: WorkerPool, state: BlockState = START
) -> Iterator[tuple[PageBlock, BlockDefinitions]]:
    """Each block with its definitions. ``state`` is that of the first."""
    for block, found in pool.in_order(partial(definitions_in_block, settings, START), blocks):
        if not follows(block.data, found, state):
            [(_, found)] = pool.in_order(partial(definitions_in_block, settings, state), [block])
        yield block, found
        state = state_behind(found, state)


class PackagePages:
    """Pages that the kernel leaves to the package, extracted by it in a process apart, within limits.

    The process is started at the first of them.
    """

    def __init__(self, settings: ExtractorSettings) -> None:
        self._settings = settings
        self._open = ExitStack()
        self._pool: ProcessPool | None = None

    def completed(self, block: PageBlock, found: BlockArticles) -> tuple[BlockArticles, int]:
        """The result with the package's articles in the unknown pages' places, and their number."""
        unknown = sum(outcome.reason == UNKNOWN for outcome in found.outcomes)
        if not unknown:
            return found, 0
        pieces, outcomes, at = [], [], 0
        for outcome in found.outcomes:
            piece = found.articles[at : at + outcome.size]
            at += outcome.size
            if outcome.reason == UNKNOWN:
                piece, outcome = self._extract(block, outcome)
            pieces.append(piece)
            outcomes.append(outcome)
        return found._replace(articles=b"".join(pieces), outcomes=outcomes), unknown

    def _extract(self, block: PageBlock, unknown: PageOutcome) -> tuple[bytes, PageOutcome]:
        if self._pool is None:
            memory = self._settings.rules.limits.memory_bytes
            self._pool = self._open.enter_context(ProcessPool(1, apart=True, memory_bytes=memory))
        page = block._replace(data=block.data[unknown.begin : unknown.end])
        settings = self._settings._replace(engine="python")
        try:
            [(_, found)] = self._pool.in_order(partial(extract_block, settings, START), [page])
        except WorkerDied as death:
            raise settings.rules.error(death) from None
        (outcome,) = found.outcomes
        return found.articles, outcome._replace(begin=unknown.begin, end=unknown.end)

    def __enter__(self) -> "PackagePages":
        return self

    def __exit__(self, *failure: object) -> None:
        self._open.__exit__(*failure)  # type: ignore[arg-type]
