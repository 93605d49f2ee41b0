"""Reads a MediaWiki XML dump, plain or compressed, as blocks of whole pages.

Only the current block is in memory, so the memory in use does not grow with the dump. If the dump is damaged,
either an error with the position is raised, or a page is skipped and reported by name. A dump that ends too
early raises an error.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import BinaryIO, NamedTuple

from bertdata._native import Engine
from bertdata.errors import InputError
from bertdata.wiki.dump.page_ends import LinePageEnds, PageEnds
from bertdata.wiki.dump.site import parse_head
from bertdata.wiki.dump.text import HashedFile, is_compressed, normalise_newlines, open_file, read_texts
from bertdata.wiki.pages import CUT_OFF, TOO_LARGE, Skipped, describe_page
from bertdata.wiki.worker_pool import WorkerPool

BLOCK_BYTES = 256 << 10
"""Approximate size of a block of pages in bytes.

The Python engines take about 50 ms for a block of this size, and the kernels a few ms. The blocks are so
small that all workers finish at about the same time.
"""

_HEAD_BYTES = 16 << 20
_PAGE_START = re.compile(rb"<page[\s>]")


class PageBlock(NamedTuple):
    """A block of whole pages.

    For a page that is too large, it contains only the reason why the page is skipped.

    data: XML of the pages, empty for a skipped page.
    begin: offset of the data in the dump's text. The first page of the dump has the offset 0.
    position: number of bytes of the dump's file read so far.
    skipped: reason why the page is skipped, or None for a block of whole pages.
    """

    data: bytes
    begin: int
    position: int
    skipped: Skipped | None = None


class PageBlocks:
    """Object that cuts the text of a dump into blocks of whole pages.

    Iterate ``read_blocks()`` once. Then ``tail`` is the text after the last page.

    texts: pieces of the dump's text, each with the number of bytes of the file read so far.
    rest: text before these pieces that has already been read. It begins with the first page.
    position: number of bytes of the file read so far.
    """

    def __init__(
        self,
        texts: Iterator[tuple[bytes, int]],
        name: str,
        extractor: str,
        *,
        max_page_bytes: int,
        rest: bytes = b"",
        position: int = 0,
    ) -> None:
        self._texts = texts
        self._name = name
        self._page_ends = LinePageEnds() if extractor == "mlperf" else PageEnds()
        self._max_page_bytes = max_page_bytes
        self._text, self._taken = rest, 0
        self._position = position
        self.tail = b""

    def read_blocks(self) -> Iterator[PageBlock]:
        """Cut the text into blocks of whole pages, and yield the blocks in order."""
        buffer, begin, searched = b"", 0, 0
        while True:
            # The buffer starts with a page. No page end starts in its first ``searched`` bytes, which are
            # therefore not searched again after each read. Without this, a long page would take quadratic
            # time.
            end = self._page_ends.find_last(buffer, searched)
            if end >= 0 and len(buffer) >= BLOCK_BYTES:
                yield from self._cut(buffer, end, begin)
                buffer, begin, searched = buffer[end:], begin + end, 0
            elif len(buffer) > self._max_page_bytes:
                # The text is longer than a page may be and has no page end. The page is too large, or the
                # dump is damaged. Skip the page without keeping its text in memory.
                skipped = Skipped(reason=TOO_LARGE, name=describe_page(buffer))
                yield PageBlock(data=b"", begin=begin, position=self._position, skipped=skipped)
                buffer, passed = self._skip_page(buffer)
                begin, searched = begin + passed, 0
            else:
                searched = self._page_ends.find_searched_end(buffer) if end < 0 else searched
                if not (read := self._read()):
                    break
                buffer += read
        end = max(end, 0)
        yield from self._cut(buffer, end, begin)
        self.tail = buffer[end:]

    def check_end(self) -> None:
        """Raise InputError unless the text after the last page (``tail``) is the end of a dump."""
        if (page := _PAGE_START.search(self.tail)) is not None:
            cut_off = describe_page(self.tail[page.start() :])
            raise InputError(
                f"{self._name}: {CUT_OFF}: the dump ends inside the page {cut_off}, "
                "expected </page> and </mediawiki>; download it again"
            )
        if b"</mediawiki>" not in self.tail:
            raise InputError(
                f"{self._name}: {CUT_OFF}: the dump ends without </mediawiki>; download it again"
            )

    def _read(self) -> bytes:
        """Return the next piece of text. It is empty at the end of the dump.

        A long text is returned in pieces that end after a page. Most of these pieces become blocks without
        being copied.
        """
        if self._taken == len(self._text):
            self._text, self._taken = self._read_next_text(), 0
        start, stop = self._taken, len(self._text)
        if stop - start > 2 * BLOCK_BYTES:
            end = self._page_ends.find_first(self._text, start + BLOCK_BYTES)
            stop = end if end >= 0 else stop
        self._taken = stop
        return self._text[start:stop]

    def _read_next_text(self) -> bytes:
        """Return the next text that is not empty, or an empty text at the end of the dump."""
        for text, position in self._texts:
            self._position = position
            if text:
                return text
        return b""

    def _cut(self, data: bytes, stop: int, begin: int) -> Iterator[PageBlock]:
        """Cut the data up to the offset ``stop`` into blocks of about BLOCK_BYTES, and yield the blocks.

        begin: offset of the data in the dump's text.
        """
        start = 0
        while start < stop:
            end = stop
            if stop - start > 2 * BLOCK_BYTES:
                end = self._page_ends.find_first(
                    data, start + BLOCK_BYTES
                )  # The search always finds a page end, because a page ends at ``stop``.
            yield PageBlock(data=data[start:end], begin=begin + start, position=self._position)
            start = end

    def _skip_page(self, buffer: bytes) -> tuple[bytes, int]:
        """Read up to the next page end without keeping the text in memory.

        buffer: start of the page.

        Returns the text after the page end, and the number of bytes that were skipped.
        """
        # Keep only the last bytes of each text, because a ``</page>`` may start there and continue in the
        # next text.
        passed = 0
        while (end := self._page_ends.find_first(buffer, 0)) < 0:
            kept = self._page_ends.find_searched_end(buffer)
            if not (read := self._read()):
                return buffer, passed
            buffer, passed = buffer[kept:] + read, passed + kept
        return buffer[end:], passed + end


def read_head(texts: Iterator[tuple[bytes, int]], name: str) -> tuple[bytes, bytes, int]:
    """Read the dump up to its first page.

    texts: pieces of the dump's text, each with the number of bytes of the file read so far.
    name: path of the dump, for error messages.

    Returns the text before the first page, the text from the first page on that has also been read, and the
    number of bytes of the file read so far.
    """
    rest, reached = b"", 0
    for text, position in texts:
        reached = position
        rest += text
        if (page := _PAGE_START.search(rest)) is not None:
            return rest[: page.start()], rest[page.start() :], reached
        if len(rest) > _HEAD_BYTES:
            raise InputError(
                f"{name}: no <page> in the first {_HEAD_BYTES >> 20} MiB, expected a MediaWiki dump"
            )
    head, end, tail = rest.partition(b"</mediawiki>")
    return head, end + tail, reached


class Dump:
    """An open dump. First use ``site``, then iterate ``read_blocks()`` once, then call ``md5()``.

    site: name of the site and its namespaces, from the dump's <siteinfo>.
    """

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        pool: WorkerPool,
        extractor: str,
        *,
        max_page_bytes: int,
        engine: Engine | None = None,
    ) -> None:
        self._file = HashedFile(file)
        self.compressed = is_compressed(self._file)
        texts = normalise_newlines(read_texts(self._file, name, pool, engine))
        head, rest, position = read_head(texts, name)
        self.site = parse_head(head, name, extractor)
        self._blocks = PageBlocks(
            texts, name, extractor, max_page_bytes=max_page_bytes, rest=rest, position=position
        )

    def read_blocks(self) -> Iterator[PageBlock]:
        """Read the pages of the dump, and yield them in blocks of whole pages.

        Raises InputError if the dump ends without ``</mediawiki>``.
        """
        yield from self._blocks.read_blocks()
        self._blocks.check_end()

    def md5(self) -> str:
        """Read the rest of the file, and return the md5 of the whole file, computed while it was read."""
        return self._file.md5()


@contextmanager
def open_dump(
    path: str, pool: WorkerPool, extractor: str, *, max_page_bytes: int, engine: Engine | None = None
) -> Iterator[Dump]:
    """Open the dump at a path or URL, and read its <siteinfo>.

    pool: workers that decompress the dump.
    extractor: program whose rules are used to read the dump, "mlperf" or "3.1.0".
    max_page_bytes: a page with more bytes of XML is skipped.
    engine: implementation of the decompression, None for C++ if it is built.
    """
    with open_file(path) as file:
        yield Dump(file, path, pool, extractor, max_page_bytes=max_page_bytes, engine=engine)


class ReopenableDump:
    """A dump that can be opened several times. The constructor already opens it, to read its <siteinfo>.

    The first call of ``open()`` goes on with the dump that is already open.

    open_: function that opens the dump.
    """

    def __init__(self, open_: Callable[[], AbstractContextManager[Dump]]) -> None:
        self._open = open_
        self._files = ExitStack()
        self._waiting: Dump | None = self._files.enter_context(open_())
        self.site = self._waiting.site

    @contextmanager
    def open(self) -> Iterator[Dump]:
        """Open the dump at its first page."""
        dump, self._waiting = self._waiting, None
        if dump is None:
            with self._open() as again:
                yield again
        else:
            with self._files:
                yield dump

    def close(self) -> None:
        """Close the dump if ``open()`` was never called."""
        self._files.close()
