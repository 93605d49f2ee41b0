"""Reads the pages of a block line by line, in the same way as WikiExtractor.

Only the first tag of a line counts, whatever element it belongs to. If a page lacks a field, the field may
keep the value of the page before, in the same cases as in WikiExtractor.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from bertdata.wiki.mlperf.characters import WORD

_TAG = re.compile(f"<(/?[{WORD}]+)[^>]*>")
_CLOSER = re.compile("<[^>]*>")

State = tuple[str, bool, bool, str | None]
"""Values that are carried over from page to page.

They are the last ``<ns>``, whether a ``<redirect>`` was seen, whether the position is inside ``<text>``, and
the id of the last page that was extracted.
"""


@dataclass(kw_only=True, slots=True)
class PageFields:
    """Fields of a page, escaped as in the dump, and its position in the block.

    closed: whether the closing tag of the page was found.
    repeated: whether the page has the same id as the page that was extracted before it.
    """

    begin: int
    end: int
    namespace: str = "0"
    page_id: str = ""
    title: str | None = None
    text: list[str] = field(default_factory=list)
    redirect: bool = False
    repeated: bool = False
    closed: bool = True

    @property
    def is_extracted(self) -> bool:
        """True if WikiExtractor extracts the page."""
        return self.closed and not self.redirect and not self.repeated


class PageReader:
    """Reader of pages line by line. Its ``state`` is carried over from block to block.

    first_id: id of the first page that is not a redirect, or None.
    """

    def __init__(self, state: State) -> None:
        self._namespace, self._redirect, self._inside_text, self._last_id = state
        self.first_id: str | None = None
        self._opened = False
        self._page = PageFields(begin=0, end=0)

    @property
    def state(self) -> State:
        """State after the pages that were read, for the next block."""
        return self._namespace, self._redirect, self._inside_text, self._last_id

    def read(self, data: bytes) -> Iterator[PageFields]:
        """Yield the pages of a block when they are closed. A page that is not closed comes last.

        data: XML of the block, which consists of whole lines.
        """
        place = 0
        for raw in _split_lines(data):
            line = raw.decode("utf-8", "surrogateescape")
            # As in WikiExtractor, only the first tag of a line counts. In the line
            # "<title>A</title><ns>1</ns>", the namespace is not seen.
            tag = _TAG.search(line)
            if tag is None:
                if self._inside_text and "<" not in line:
                    self._page.text.append(line)
            elif tag[1] == "/page":
                yield self._close_page(place + _measure_line(line[: tag.end()]))
            else:
                self._read_tag(line, tag, place)
            place += len(raw)
        if self._opened:
            self._page.end, self._page.closed = place, False
            yield self._page

    def _read_tag(self, line: str, tag: re.Match[str], place: int) -> None:
        """Update the current page from the first tag of a line.

        place: offset of the line in the block.
        """
        page, name = self._page, tag[1]
        if name == "page":
            page.begin = place + _measure_line(line[: tag.start()])
            page.text.clear()
            self._opened, self._redirect = True, False
        elif name == "id":
            # The first id is that of the page. Later ids belong to its revision and its contributor.
            page.page_id = page.page_id or _get_text_after(line, tag)
        elif name == "title":
            page.title = _get_text_after(line, tag)
        elif name == "ns":
            self._namespace = _get_text_after(line, tag)
        elif name == "redirect":
            self._redirect = True
        elif name == "text":
            self._open_text(line, tag)
        elif name == "/text":
            page.text.append(line[: tag.start()])
            self._inside_text = False
        elif self._inside_text:
            page.text.append(line)

    def _open_text(self, line: str, tag: re.Match[str]) -> None:
        """Read the line on which the text of a page starts."""
        # A whole text may be on one line, as in "<text>A short text</text>". Any second tag on the line
        # closes the text. With "<text />", there is no text.
        rest = _get_text_after(line, tag)
        closed = _CLOSER.match(line, tag.end() + len(rest)) is not None
        if not closed and tag[0].endswith("/>"):
            return
        self._page.text.append(rest)
        self._inside_text = not closed

    def _close_page(self, end: int) -> PageFields:
        """Return the current page, and start a new page.

        end: end of the page in the block.
        """
        page = self._page
        # The namespace belongs to the reader, not to the page, and is reset only when a page is extracted. As
        # in WikiExtractor, a page without <ns> after a redirect therefore has the namespace of the redirect.
        page.end, page.namespace, page.redirect = end, self._namespace, self._redirect
        if not page.redirect:
            if self.first_id is None:
                self.first_id = page.page_id
            page.repeated = page.page_id == self._last_id
        if page.is_extracted:
            self._namespace, self._last_id = "0", page.page_id
        self._page = PageFields(begin=end, end=end)
        self._opened = False
        return page


def _get_text_after(line: str, tag: re.Match[str]) -> str:
    """Return the text after a tag, up to the next tag or to the end of the line.

    The line feed is included.
    """
    return line[tag.end() :].partition("<")[0]


def _measure_line(text: str) -> int:
    """Return the size in bytes of a text that was decoded from the block."""
    return len(text.encode("utf-8", "surrogateescape"))


def _split_lines(data: bytes) -> Iterator[bytes]:
    """Split the data into lines, and keep the line feeds. Only a line feed ends a line."""
    begin = 0
    while begin < len(data):
        end = data.find(b"\n", begin) + 1 or len(data)
        yield data[begin:end]
        begin = end
