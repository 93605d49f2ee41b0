"""Read records from files of articles, which WikiExtractor writes between ``<doc id="...">`` and ``</doc>``.

Each article is one record. Its id is the article's id, and its text is the lines after the title, as in
WikiExtractor's JSON output.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bertdata.sources.encoding import describe_undecodable, open_decoded
from bertdata.sources.escapes import unescape_text
from bertdata.sources.piece import PIECE_BYTES, Found, ReadPiece
from bertdata.sources.records import BadRecord, Record
from bertdata.sources.settings import RecordSettings

ARTICLE_START = b"<doc id="
"""The first bytes of an article."""

_BOM = b"\xef\xbb\xbf"
_END = b"\n</doc>"
_CLOSING = re.compile(rb"^</doc>[^\n]*\n?", re.MULTILINE)
# matches the opening tag and the title line after it
_HEAD = re.compile(rb'\s*<doc id="?([^"\s>]*)[^\n]*\n?[^\n]*\n?')
_OPENING = re.compile(rb"^<doc id=", re.MULTILINE)
_WHOLE_OPENING = re.compile(rb'^<doc id="[^"]*" (?:revid="[^"]*" )?url="[^"]*" title="', re.MULTILINE)
"""The complete first line of an article, as every version of WikiExtractor writes it."""


@dataclass(frozen=True, slots=True)
class ArticlesPiece:
    """Piece of a file of articles: consecutive whole articles.

    escaped: whether the extractor escaped ``&``, ``<`` and ``>`` in the text.
    """

    data: bytes
    bytes: int
    escaped: bool = False

    def read(self, settings: RecordSettings) -> ReadPiece:
        *closed, rest = _CLOSING.split(self.data.replace(b"\r\n", b"\n"))
        found: Found = [
            _make_article_record(number, data, settings, self.escaped)
            for number, data in enumerate(closed, 1)
        ]
        if rest.strip():
            found.append(_make_unclosed_record(len(found) + 1, rest, settings))
        return ReadPiece(found, len(found))


def split_articles_file(
    path: str, settings: RecordSettings, *, escaped: bool = False
) -> Iterator[ArticlesPiece]:
    """Divide a file of articles into pieces, that is, groups of consecutive whole articles.

    An article is cut after ``settings.raw_bytes`` bytes, so that memory stays bounded. Such an article is
    longer than a record may be, so it becomes a bad record (a record that cannot be used) anyway.

    escaped: whether the extractor escaped ``&``, ``<`` and ``>`` in the text.
    """
    with open_decoded(path, settings.encoding) as file:
        rest, looked_at = b"", 0
        while more := file.read(PIECE_BYTES):
            rest += more
            rest = rest.removeprefix(_BOM)
            # Cut after the last complete article. The bytes before ``looked_at`` were already searched, and
            # need not be searched again each time a long article grows.
            closing = rest.rfind(_END, looked_at)
            if cut := rest.find(b"\n", closing + 1) + 1 if closing >= 0 else 0:
                yield ArticlesPiece(rest[:cut], cut, escaped)
                rest, looked_at = rest[cut:], 0
                continue
            if len(rest) > settings.raw_bytes + PIECE_BYTES:
                # The last bytes are kept because they may be the first half of "</doc>".
                rest = rest[: settings.raw_bytes] + rest[-len(_END) :]
            looked_at = closing if closing >= 0 else max(0, len(rest) - len(_END))
        if rest:
            yield ArticlesPiece(rest, len(rest), escaped)


def _make_article_record(
    number: int, data: bytes, settings: RecordSettings, escaped: bool = False
) -> Record | BadRecord:
    """Parse an article, without its line ``</doc>``, into a record. A faulty article gives a BadRecord."""
    head = _HEAD.match(data)
    if head is None:
        return BadRecord(number, "malformed", 'begins with no <doc id="...">')
    identity, text = head[1].decode(errors="replace"), data[head.end() :].strip(b"\n")
    if len(data) >= settings.raw_bytes:  # split_articles_file cut its end, perhaps inside a character
        return BadRecord(number, "too_long", f"an article of {settings.raw_bytes} bytes or more", identity)
    is_whole = _WHOLE_OPENING.search(data, 0, head.end()) is not None
    # An article may quote "<doc id=" in its text. If its first line has all attributes, only another complete
    # first line counts as the start of a new article.
    if (_WHOLE_OPENING if is_whole else _OPENING).search(text):
        return BadRecord(number, "malformed", "is not closed by </doc> before the next one opens", identity)
    try:
        return Record(number, (unescape_text(text) if escaped else text).decode(), identity)
    except UnicodeDecodeError as error:
        fault = describe_undecodable(error.object, error.start, settings.encoding)
        return BadRecord(number, "malformed", fault, identity)


def _make_unclosed_record(number: int, data: bytes, settings: RecordSettings) -> BadRecord:
    """Return the bad record for an article at the end of the file that is not closed by ``</doc>``."""
    found = _make_article_record(number, data, settings)
    if isinstance(found, BadRecord):
        return found
    return BadRecord(number, "malformed", "is not closed by </doc> before the file ends", found.id)
