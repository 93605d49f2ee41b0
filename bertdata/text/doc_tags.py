"""Stage 1 of MLPerf's text stage: WikiExtractor's frame is taken off the articles.

<doc id="12" url="..." title="Anarchism">        ->  an empty line
Anarchism                                            (the title: dropped)
                                                     (empty: dropped)
Anarchism is a political philosophy that ...     ->  the line
</doc>                                               (dropped)
"""

import re
import shlex
from dataclasses import dataclass

from bertdata.errors import InputError
from bertdata.io.foreign_text import universal_newlines

_OPENING = re.compile(rb'(?:\xef\xbb\xbf)?<doc id="?([^"\s>]*)')
_WHOLE_FRAME = re.compile(rb'(?:\xef\xbb\xbf)?<doc id="[^"]*" (?:revid="[^"]*" )?url="[^"]*" title="')
"""A line as every version of WikiExtractor writes it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StrippedText:
    """Text without frames, and how many articles it holds."""

    text: bytes
    articles: int


def strip_frame(data: bytes, name: str) -> StrippedText:
    """The articles' lines, an empty one before each article. Universal newlines.

    As the original: a line with ``<doc`` anywhere counts as a frame's first line, so the line after
    it goes too, even where that ends the article, and any line with ``</doc>`` goes. InputError for a
    file without articles, and for an article that is not closed.
    """
    kept: list[bytes] = []
    watch = FrameWatch(name)
    title_due = False
    for number, line in enumerate(universal_newlines(data).split(b"\n"), 1):
        if title_due:
            title_due = False
            if b"</doc>" in line:  # a <doc in an article's last line: the original drops its end as a title
                watch.see_closing()
        elif b"<" not in line:  # most lines; one character is found far quicker than several
            if line:
                kept.append(line)
        elif b"<doc" in line:
            watch.see_opening(line, number)
            title_due = True
            kept.append(b"")
        elif b"</doc>" in line:
            watch.see_closing()
        else:
            kept.append(line)
    watch.finish()
    kept.append(b"")
    return StrippedText(text=b"\n".join(kept), articles=watch.articles)


class FrameWatch:
    """Counts articles and notices a frame that is cut short.

    Only lines that begin as WikiExtractor's own do count as opened here: an article about mark-up
    may well hold a ``<doc``. Where frames are whole, with url and title, a shorter one is the article's text.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._opened_at = 0
        self._opened_whole = False
        self._opened_id = ""
        self.articles = 0

    def see_opening(self, line: bytes, number: int) -> None:
        """Take note of a line with ``<doc``. InputError when the article before it is still open."""
        opening = _OPENING.match(line)
        if opening is None:
            return
        is_whole = _WHOLE_FRAME.match(line) is not None
        if self._opened_at and self._opened_whole and not is_whole:
            return
        if self._opened_at:
            raise self._reopened(number)
        self._opened_at, self._opened_whole = number, is_whole
        self._opened_id = opening[1].decode(errors="replace")
        self.articles += 1

    def see_closing(self) -> None:
        self._opened_at = 0

    def finish(self) -> None:
        """InputError for an article still open, or when there was none."""
        if self._opened_at:
            raise self._not_closed("before the file ends", "the file is cut short, extract it again")
        if not self.articles:
            raise InputError(
                f'{self._name}: no article found, expected lines <doc id="..."> to </doc> '
                "as bertdata extract writes them"
            )

    def _reopened(self, number: int) -> InputError:
        """The error for an article within which a line looks like the first line of another."""
        return self._not_closed(
            f"before the next one opens on line {number}",
            "if that line is text which the page shows, extract again and leave the page out: --skip-page "
            f"{shlex.quote(self._opened_id)}; else the file is damaged, extract it again",
        )

    def _not_closed(self, where: str, remedy: str) -> InputError:
        return InputError(
            f"{self._name}: line {self._opened_at}: <doc> is not closed by </doc> {where}; {remedy}"
        )
