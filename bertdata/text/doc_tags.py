"""Stage 1 of MLPerf's text processing: remove the ``<doc>`` tags and titles that WikiExtractor writes.

On the left the lines of an article, on the right what becomes of them::

    <doc id="12" url="..." title="Anarchism">        an empty line
    Anarchism                                        dropped, because it is the title
                                                     dropped, because it is empty
    Anarchism is a political philosophy that ...     kept
    </doc>                                           dropped
"""

import re
import shlex
from dataclasses import dataclass

from bertdata.errors import InputError
from bertdata.io.foreign_text import replace_line_ends

_OPENING = re.compile(rb'(?:\xef\xbb\xbf)?<doc id="?([^"\s>]*)')
_WHOLE_OPENING = re.compile(rb'(?:\xef\xbb\xbf)?<doc id="[^"]*" (?:revid="[^"]*" )?url="[^"]*" title="')
"""The complete first line of an article, as every version of WikiExtractor writes it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StrippedText:
    """Text without ``<doc>`` tags.

    articles: number of articles in the text.
    """

    text: bytes
    articles: int


def strip_doc_tags(data: bytes, name: str) -> StrippedText:
    r"""Remove the ``<doc>`` tags and titles from a file, leaving an empty line before each article.

    Lines end at ``\n``, ``\r`` or ``\r\n``. As in MLPerf's program, a line with ``<doc`` anywhere counts as
    the first line of an article. The line after it is dropped as the title, even if it closes the article.
    Any line with ``</doc>`` is dropped. Raises InputError if the file has no articles or if an article is not
    closed.
    """
    kept: list[bytes] = []
    watch = ArticleCounter(name)
    title_due = False
    for number, line in enumerate(replace_line_ends(data).split(b"\n"), 1):
        if title_due:
            title_due = False
            # the article's last line mentions "<doc", so this </doc> is dropped like a title
            if b"</doc>" in line:
                watch.note_closing()
        elif b"<" not in line:  # most lines; searching a single byte is much faster
            if line:
                kept.append(line)
        elif b"<doc" in line:
            watch.note_opening(line, number)
            title_due = True
            kept.append(b"")
        elif b"</doc>" in line:
            watch.note_closing()
        else:
            kept.append(line)
    watch.finish()
    kept.append(b"")
    return StrippedText(text=b"\n".join(kept), articles=watch.articles)


class ArticleCounter:
    """Counts the articles of a file and detects a missing ``</doc>`` while the lines are read.

    Only a line that starts like WikiExtractor's first line opens an article here, because an article about
    mark-up may mention ``<doc``. If the first line of the open article is complete, with url and title, a
    line in it that starts with ``<doc`` but is not complete counts as text.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._opened_at = 0
        self._opened_whole = False
        self._opened_id = ""
        self.articles = 0

    def note_opening(self, line: bytes, number: int) -> None:
        """Record a line that contains ``<doc``, which opens an article if it starts like WikiExtractor's tag.

        Raises InputError if the article before it is still open.

        number: number of the line, from 1.
        """
        opening = _OPENING.match(line)
        if opening is None:
            return
        is_whole = _WHOLE_OPENING.match(line) is not None
        if self._opened_at and self._opened_whole and not is_whole:
            return
        if self._opened_at:
            raise self._make_reopened_error(number)
        self._opened_at, self._opened_whole = number, is_whole
        self._opened_id = opening[1].decode(errors="replace")
        self.articles += 1

    def note_closing(self) -> None:
        """Record a line with ``</doc>``, which closes the open article."""
        self._opened_at = 0

    def finish(self) -> None:
        """Raise InputError if an article is still open or if there was no article."""
        if self._opened_at:
            raise self._make_unclosed_error("before the file ends", "the file is cut short, extract it again")
        if not self.articles:
            raise InputError(
                f'{self._name}: no article found, expected lines <doc id="..."> to </doc> '
                "as bertdata extract writes them"
            )

    def _make_reopened_error(self, number: int) -> InputError:
        """Return the error for an article that is still open at a line that looks like the start of another
        article.
        """
        return self._make_unclosed_error(
            f"before the next one opens on line {number}",
            "if that line is text which the page shows, extract again and leave the page out: --skip-page "
            f"{shlex.quote(self._opened_id)}; else the file is damaged, extract it again",
        )

    def _make_unclosed_error(self, where: str, remedy: str) -> InputError:
        return InputError(
            f"{self._name}: line {self._opened_at}: <doc> is not closed by </doc> {where}; {remedy}"
        )
