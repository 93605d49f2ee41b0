"""Read the pages of a block line by line, as WikiExtractor does.

Only the first tag of a line counts, whatever element it is in. A field that a page lacks keeps the value of
the page before, in the same cases as in WikiExtractor.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from bertdata.wiki.mlperf.characters import WORD

_TAG = re.compile(f"<(/?[{WORD}]+)[^>]*>")
_CLOSER = re.compile("<[^>]*>")

State = tuple[str, bool, bool, str | None]
"""Values that carry over from page to page: last ``<ns>``, whether a ``<redirect>`` was seen, whether inside
``<text>``, and the id of the last page that was emitted.
"""


@dataclass(kw_only=True, slots=True)
class PageFields:
    """Fields of a page, escaped as in the dump, and its position in the block.

    closed: whether its closing tag was found.
    repeated: whether the page has the same id as the page that was emitted before it.
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
    def emitted(self) -> bool:
        """Returns True if WikiExtractor passes the page on to be extracted."""
        return self.closed and not self.redirect and not self.repeated


class PageReader:
    """Line-by-line reader of pages. Its ``state`` carries over from block to block.

    first_id: id of the first page that is not a redirect, or None.
    """

    def __init__(self, state: State) -> None:
        self._namespace, self._redirect, self._inside_text, self._last_id = state
        self.first_id: str | None = None
        self._opened = False
        self._page = PageFields(begin=0, end=0)

    @property
    def state(self) -> State:
        """Values to carry over to the next block."""
        return self._namespace, self._redirect, self._inside_text, self._last_id

    def read(self, data: bytes) -> Iterator[PageFields]:
        """Yield the pages of a block of whole lines, each when it is closed.

        A page that is not closed comes last.
        """
        place = 0
        for raw in _split_lines(data):
            line = raw.decode("utf-8", "surrogateescape")
            # Only the first tag counts, as in WikiExtractor. In a line "<title>A</title><ns>1</ns>" the
            # namespace is not seen.
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
        page, name = self._page, tag[1]
        if name == "page":
            page.begin = place + _measure_line(line[: tag.start()])
            page.text.clear()
            self._opened, self._redirect = True, False
        elif name == "id":
            # The page's id comes first. Later ids belong to its revision and contributor.
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
        # "<text>A short text</text>" on one line: any second tag on the line closes the text. "<text />" has
        # no text.
        rest = _get_text_after(line, tag)
        closed = _CLOSER.match(line, tag.end() + len(rest)) is not None
        if not closed and tag[0].endswith("/>"):
            return
        self._page.text.append(rest)
        self._inside_text = not closed

    def _close_page(self, end: int) -> PageFields:
        page = self._page
        # The namespace is kept in the reader, not in the page, and is only reset when a page is emitted. So a
        # page without <ns> after a redirect has the redirect's namespace, as in WikiExtractor.
        page.end, page.namespace, page.redirect = end, self._namespace, self._redirect
        if not page.redirect:
            if self.first_id is None:
                self.first_id = page.page_id
            page.repeated = page.page_id == self._last_id
        if page.emitted:
            self._namespace, self._last_id = "0", page.page_id
        self._page = PageFields(begin=end, end=end)
        self._opened = False
        return page


def _get_text_after(line: str, tag: re.Match[str]) -> str:
    """Return the text after a tag, up to the next tag or to the end of the line (with its line feed)."""
    return line[tag.end() :].partition("<")[0]


def _measure_line(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _split_lines(data: bytes) -> Iterator[bytes]:
    """Split the data into lines at line feeds only, and keep the line feeds."""
    begin = 0
    while begin < len(data):
        end = data.find(b"\n", begin) + 1 or len(data)
        yield data[begin:end]
        begin = end
