"""Read a MediaWiki XML dump, plain or compressed, as blocks of whole pages.

Only the current block is in memory, so memory does not grow with the dump. Damage either raises an error with
its position, or skips a page that is reported by name. A dump without its end raises an error.
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
"""Size of a block of pages.

A block takes the Python engines about 50 ms and the kernels a few, so that all workers finish at about the
same time.
"""

_HEAD_BYTES = 16 << 20
_PAGE_START = re.compile(rb"<page[\s>]")


class PageBlock(NamedTuple):
    """Block of whole pages, or, for a page that is too large, only the reason why it is skipped.

    data: XML of the pages, empty for a skipped page.
    begin: offset of the data in the dump's text, counted from the first page.
    position: number of bytes of the dump's file that have been read.
    skipped: reason why the page is skipped, or None for whole pages.
    """

    data: bytes
    begin: int
    position: int
    skipped: Skipped | None = None


class PageBlocks:
    """Cutter of a dump's text into blocks of whole pages.

    Iterate ``read_blocks()`` once, then use ``tail``, the text after the last page.

    texts: pieces of a dump's text, each with the number of bytes of the file read so far.
    rest: text before these pieces that was already read. It begins with the first page.
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
        """Cut the text into blocks of whole pages, and yield them in order."""
        buffer, begin, searched = b"", 0, 0
        while True:
            # buffer starts at a page. ``searched``: bytes in which no page end starts, so that a long page is
            # not searched again after each read.
            end = self._page_ends.find_last(buffer, searched)
            if end >= 0 and len(buffer) >= BLOCK_BYTES:
                yield from self._cut(buffer, end, begin)
                buffer, begin, searched = buffer[end:], begin + end, 0
            elif len(buffer) > self._max_page_bytes:
                # There is no page end in so much text, so the dump is damaged or the page is too large. Skip
                # the page without keeping its text.
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
        """Raise InputError unless ``tail`` is the end of a dump."""
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
        """Return the next piece of text, empty at the end of the dump.

        A long text is returned in pieces that end after a page. Most of these pieces are blocks and need not
        be copied.
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
        for text, position in self._texts:
            self._position = position
            if text:
                return text
        return b""

    def _cut(self, data: bytes, stop: int, begin: int) -> Iterator[PageBlock]:
        """Cut the data up to ``stop`` into blocks of about BLOCK_BYTES. One read may bring several blocks."""
        start = 0
        while start < stop:
            end = stop
            if stop - start > 2 * BLOCK_BYTES:
                end = self._page_ends.find_first(
                    data, start + BLOCK_BYTES
                )  # the search always finds a page end, since a page ends at stop
            yield PageBlock(data=data[start:end], begin=begin + start, position=self._position)
            start = end

    def _skip_page(self, buffer: bytes) -> tuple[bytes, int]:
        """Read up to the next page end without keeping the text.

        Returns the rest, and the number of bytes skipped.
        """
        # Keep only the last bytes, because a ``</page>`` may start there and continue in the next read.
        passed = 0
        while (end := self._page_ends.find_first(buffer, 0)) < 0:
            kept = self._page_ends.find_searched_end(buffer)
            if not (read := self._read()):
                return buffer, passed
            buffer, passed = buffer[kept:] + read, passed + kept
        return buffer[end:], passed + end


def read_head(texts: Iterator[tuple[bytes, int]], name: str) -> tuple[bytes, bytes, int]:
    """Read the dump up to its first page.

    Returns the text before the page, the text from the page on that was also read, and the number of bytes of
    the file read so far.

    name: path of the dump, for errors.
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
    """Opened dump. Use ``site`` first, then iterate ``read_blocks()`` once, then call ``md5()``.

    site: site name and namespaces from the dump's <siteinfo>.
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

    engine: implementation of the decompression.
    """
    with open_file(path) as file:
        yield Dump(file, path, pool, extractor, max_page_bytes=max_page_bytes, engine=engine)


class OpenedOnce:
    """Dump that the constructor opens to read its <siteinfo>.

    The first call of ``open()`` continues after it.

    open_: function that opens the dump from its start.
    """

    def __init__(self, open_: Callable[[], AbstractContextManager[Dump]]) -> None:
        self._open = open_
        self._files = ExitStack()
        self._waiting: Dump | None = self._files.enter_context(open_())
        self.site = self._waiting.site

    @contextmanager
    def open(self) -> Iterator[Dump]:
        """Yield the dump, positioned at its first page."""
        dump, self._waiting = self._waiting, None
        if dump is None:
            with self._open() as again:
                yield again
        else:
            with self._files:
                yield dump

    def close(self) -> None:
        """Close the dump if it was never used."""
        self._files.close()
