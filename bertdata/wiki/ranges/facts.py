"""Reads a byte range of a dump in blocks of pages, and collects the facts that are needed to join the
ranges.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from bertdata.wiki.dump.dump import PageBlock, PageBlocks, read_head
from bertdata.wiki.dump.text import open_file
from bertdata.wiki.extractor import (
    START,
    BlockArticles,
    BlockDefinitions,
    BlockState,
    ExtractorSettings,
    find_state_after,
    states_namespace,
)
from bertdata.wiki.ranges.links import RangeLink
from bertdata.wiki.ranges.ranges import DumpRanges, RangeReader


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeFacts:
    """Small summary of a range. With the summaries of all ranges, their results can be checked and joined.

    number: number of the range, from 0.
    link: where the bzip2 blocks of the range start and end, to check that no block between two ranges is
        missed.
    digest: CRC-32 of the text that belongs to the range.
    blocks: number of blocks of pages.
    states_namespace: whether the first page states its namespace, as in all dumps that MediaWiki writes.
    first_id: id of the first page that may be an article, or None.
    exit: state after the range (see ``BlockState``).
    """

    number: int
    link: RangeLink
    digest: int
    blocks: int
    states_namespace: bool
    first_id: str | None
    exit: BlockState

    def are_valid_after(self, state: BlockState) -> bool:
        """Return True if the results for the range are right, although it was read as if the dump started
        there.

        state: true state before the range.
        """
        # This is the same test that ``extractor.is_result_valid`` makes for a block. Here only the summary of
        # the range is known, and not its text.
        if self.blocks == 0:
            return True
        if state.last_id is not None and state.last_id == self.first_id:
            return False
        return state[:3] == START[:3] or (not state.inside_text and self.states_namespace)

    def find_state_after(self, state: BlockState) -> BlockState:
        """Return the state after the range.

        state: state before the range. ``are_valid_after`` must have returned True for this state.
        """
        if self.blocks == 0:
            return state
        last_id = state.last_id if self.exit.last_id is None else self.exit.last_id
        return self.exit._replace(last_id=last_id)


class RangeBlocks:
    """Reader of the pages of a range.

    Iterate ``read_blocks()`` once, and call ``add_block`` after each block. Then use ``facts``.

    state: state before the range (see ``BlockState``).
    """

    def __init__(
        self, ranges: DumpRanges, number: int, settings: ExtractorSettings, state: BlockState
    ) -> None:
        self._ranges = ranges
        self._number = number
        self._settings = settings
        self._digest = self._blocks = 0
        self._states_namespace = False
        self._first_id: str | None = None
        self._state = state
        self._link = RangeLink()

    def read_blocks(self) -> Iterator[PageBlock]:
        """Yield the pages of the range in blocks of whole pages.

        Raises InputError if the dump is damaged or ends too early.
        """
        path = self._ranges.path
        with open_file(path) as file:
            reader = RangeReader(self._ranges, self._number, file, self._settings.engine)
            texts = self._update_digest(reader.read_texts())
            head = read_head(texts, path) if self._number == 0 else (b"", b"", 0)
            pages = PageBlocks(
                texts,
                path,
                self._settings.extractor,
                max_page_bytes=self._settings.max_page_bytes,
                rest=head[1],
                position=head[2],
            )
            yield from pages.read_blocks()
        if reader.owns_end:
            pages.check_end()
        self._link = reader.link

    def _update_digest(self, texts: Iterator[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
        """Yield the texts unchanged, and include them in the CRC-32 of the range."""
        for text, position in texts:
            self._digest = zlib.crc32(text, self._digest)
            yield text, position

    def add_block(self, block: PageBlock, found: BlockArticles | BlockDefinitions | None = None) -> None:
        """Include a block that was read in the facts about the range.

        found: result of the extractor for the block, or None if no extractor was used.
        """
        if not self._blocks:
            self._states_namespace = states_namespace(block.data)
        self._blocks += 1
        if found is not None:
            self._first_id = found.first_id if self._first_id is None else self._first_id
            self._state = find_state_after(found, self._state)

    @property
    def facts(self) -> RangeFacts:
        """Facts about the range. They are complete when ``add_block`` was called for the last block."""
        return RangeFacts(
            number=self._number,
            link=self._link,
            digest=self._digest,
            blocks=self._blocks,
            states_namespace=self._states_namespace,
            first_id=self._first_id,
            exit=self._state,
        )
