"""Stage 1 of MLPerf's text stage: WikiExtractor's frame is taken off the articles.

<doc id="12" url="..." title="Anarchism">        ->  an empty line
Anarchism                                            (the title: dropped)
                                                     (empty: dropped)
Anarchism is a political philosophy that ...     ->  the line
</doc>                                               (dropped)
"""

import re
from dataclasses import dataclass

from bertdata.errors import InputError
from bertdata.text.reading import universal_newlines

_OPENING = re.compile(rb"(?:\xef\xbb\xbf)?<doc id=")


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
    may well hold a ``<doc``.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._opened_at = 0
        self.articles = 0

    def see_opening(self, line: bytes, number: int) -> None:
        """Take note of a line with ``<doc``. InputError when the article before it is still open."""
        if not _OPENING.match(line):
            return
        if self._opened_at:
            raise self._not_closed(f"before the next one opens on line {number}")
        self._opened_at = number
        self.articles += 1

    def see_closing(self) -> None:
        self._opened_at = 0

    def finish(self) -> None:
        """InputError for an article still open, or when there was none."""
        if self._opened_at:
            raise self._not_closed("before the file ends")
        if not self.articles:
            raise InputError(
                f'{self._name}: no article found, expected lines <doc id="..."> to </doc> '
                "as bertdata extract writes them"
            )

    def _not_closed(self, where: str) -> InputError:
        return InputError(
            f"{self._name}: line {self._opened_at}: <doc> is not closed by </doc> {where}; "
            "the file is cut short, extract it again"
        )
