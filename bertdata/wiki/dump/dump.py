"""A MediaWiki XML dump as a stream of blocks of whole pages, plain or compressed.

Nothing is kept but the block in hand, so memory does not grow with the dump. Damage is an error that
says where, or a page that is skipped by name; the end of the dump must be there.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import BinaryIO, NamedTuple

from bertdata._native import Engine
from bertdata.errors import InputError
from bertdata.wiki.dump.page_ends import LinePageEnds, PageEnds
from bertdata.wiki.dump.site import parse_head
from bertdata.wiki.dump.text import HashedFile, is_compressed, open_file, plain_newlines, read_texts
from bertdata.wiki.pages import CUT_OFF, TOO_LARGE, Skipped, page_name
from bertdata.wiki.worker_pool import WorkerPool

BLOCK_BYTES = 256 << 10
"""Size of a block of pages: some 50 ms of the Python engines' work, a few of the kernels', so that workers
finish together."""

_HEAD_BYTES = 16 << 20
_PAGE_START = re.compile(rb"<page[\s>]")


class PageBlock(NamedTuple):
    """Whole pages, or one page that cannot be had whole.

    begin: offset of the data in the dump's text, counted from its first page. position: the offset in the
    dump's file that reading has reached.
    """

    data: bytes
    begin: int
    position: int
    skipped: Skipped | None = None


class PageBlocks:
    """Cuts text into blocks of whole pages: ``blocks()`` once, then ``tail``, the text behind the last page.

    texts: pieces of a dump's text, from a page's begin on, each with the offset in the file that it reaches
    to; the first is ``rest``.
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
        self._find_ends = LinePageEnds() if extractor == "mlperf" else PageEnds()
        self._max_page_bytes = max_page_bytes
        self._text, self._taken = rest, 0
        self._position = position
        self.tail = b""

    def blocks(self) -> Iterator[PageBlock]:
        """Blocks of whole pages, in order."""
        buffer, begin, searched = b"", 0, 0
        while True:
            end = self._find_ends.last(buffer, searched)
            if end >= 0 and len(buffer) >= BLOCK_BYTES:
                yield from self._cut(buffer, end, begin)
                buffer, begin, searched = buffer[end:], begin + end, 0
            elif len(buffer) > self._max_page_bytes:
                skipped = Skipped(reason=TOO_LARGE, name=page_name(buffer))
                yield PageBlock(data=b"", begin=begin, position=self._position, skipped=skipped)
                buffer, passed = self._pass_over(buffer)
                begin, searched = begin + passed, 0
            else:
                searched = self._find_ends.searched(buffer) if end < 0 else searched
                if not (read := self._read()):
                    break
                buffer += read
        end = max(end, 0)
        yield from self._cut(buffer, end, begin)
        self.tail = buffer[end:]

    def check_end(self) -> None:
        """InputError unless the dump ends in ``tail``."""
        if (page := _PAGE_START.search(self.tail)) is not None:
            cut_off = page_name(self.tail[page.start() :])
            raise InputError(
                f"{self._name}: {CUT_OFF}: the dump ends inside the page {cut_off}, "
                "expected </page> and </mediawiki>; download it again"
            )
        if b"</mediawiki>" not in self.tail:
            raise InputError(
                f"{self._name}: {CUT_OFF}: the dump ends without </mediawiki>; download it again"
            )

    def _read(self) -> bytes:
        """The next piece of text, empty at the dump's end.

        A long text is read in pieces that end behind a page: most of them are blocks, and not copied again.
        """
        if self._taken == len(self._text):
            self._text, self._taken = self._next_text(), 0
        start, stop = self._taken, len(self._text)
        if stop - start > 2 * BLOCK_BYTES:
            end = self._find_ends.first(self._text, start + BLOCK_BYTES)
            stop = end if end >= 0 else stop
        self._taken = stop
        return self._text[start:stop]

    def _next_text(self) -> bytes:
        for text, position in self._texts:
            self._position = position
            if text:
                return text
        return b""

    def _cut(self, data: bytes, stop: int, begin: int) -> Iterator[PageBlock]:
        """The data up to ``stop`` as blocks of about BLOCK_BYTES: one read may bring several."""
        start = 0
        while start < stop:
            end = stop
            if stop - start > 2 * BLOCK_BYTES:
                end = self._find_ends.first(data, start + BLOCK_BYTES)  # there is one at stop
            yield PageBlock(data=data[start:end], begin=begin + start, position=self._position)
            start = end

    def _pass_over(self, buffer: bytes) -> tuple[bytes, int]:
        """Read to the next page end, forgetting what is before it. Returns the rest, and the bytes passed."""
        passed = 0
        while (end := self._find_ends.first(buffer, 0)) < 0:
            kept = self._find_ends.searched(buffer)
            if not (read := self._read()):
                return buffer, passed
            buffer, passed = buffer[kept:] + read, passed + kept
        return buffer[end:], passed + end


def read_head(texts: Iterator[tuple[bytes, int]], name: str) -> tuple[bytes, bytes, int]:
    """Everything before the first page, what was read beyond it, and the offset in the file reached.

    name: of the dump, for errors.
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
    """One opened dump: ``site`` from its head, then ``blocks()`` once, then ``md5()``."""

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
        texts = plain_newlines(read_texts(self._file, name, pool, engine))
        head, rest, position = read_head(texts, name)
        self.site = parse_head(head, name, extractor)
        self._blocks = PageBlocks(
            texts, name, extractor, max_page_bytes=max_page_bytes, rest=rest, position=position
        )

    def blocks(self) -> Iterator[PageBlock]:
        """Blocks of whole pages, in order. InputError where the dump ends before ``</mediawiki>``."""
        yield from self._blocks.blocks()
        self._blocks.check_end()

    def md5(self) -> str:
        """The md5 of the whole file, which was computed while it was read. The rest of it is read now."""
        return self._file.md5()


@contextmanager
def open_dump(
    path: str, pool: WorkerPool, extractor: str, *, max_page_bytes: int, engine: Engine | None = None
) -> Iterator[Dump]:
    """The dump of a path or a URL, its head read and checked. engine: of decompression."""
    with open_file(path) as file:
        yield Dump(file, path, pool, extractor, max_page_bytes=max_page_bytes, engine=engine)


class OpenedOnce:
    """A dump that is opened at once, for what its head says, and read from there when it is first wanted."""

    def __init__(self, open_: Callable[[], AbstractContextManager[Dump]]) -> None:
        self._open = open_
        self._files = ExitStack()
        self._waiting: Dump | None = self._files.enter_context(open_())
        self.site = self._waiting.site

    @contextmanager
    def open(self) -> Iterator[Dump]:
        """The dump, at its first page."""
        dump, self._waiting = self._waiting, None
        if dump is None:
            with self._open() as again:
                yield again
        else:
            with self._files:
                yield dump

    def close(self) -> None:
        """Close the dump if it still waits."""
        self._files.close()
