r"""A dump in ranges of its file's bytes, each read by a worker of its own.

A range's own text is that of the bzip2 blocks that begin in it, or its bytes where the dump is plain XML;
a gzip file is one range. Pages lie across the ends, so that the text is cut elsewhere: at the first page
end in each range's own text. A range owns the text from there to the first page end in the next range that
has one, and the first range from the dump's begin; a range without a page end owns nothing. A page end is a
line of ``</page>`` and blanks alone, whose newlines both lie in the range: whoever comes from the range
before finds the same ones as who begins there.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal, NamedTuple

from bertdata._native import Engine
from bertdata.wiki.dump.bzip2_range import Bzip2Range
from bertdata.wiki.dump.gzip_text import read_gzip
from bertdata.wiki.ranges.links import RangeLink

MAX_RANGE_BYTES = 32 << 20
"""Of a compressed dump: some 150 MB of text, so that the blocks that two ranges read count for little."""

MIN_RANGE_BYTES = 256 << 10
_RANGES = 64
"""Ranges of a dump of middle size, for as many workers."""

DumpKind = Literal["xml", "bzip2", "gzip"]

_READ_BYTES = 1 << 20
_PAGE_END = re.compile(rb"\n[ \t]{0,64}</page>[ \t]{0,64}\n")
_LONGEST_PAGE_END = 64 + len(b"\n</page>\n") + 64


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpRanges:
    """A division of a dump into ranges: its path, or URL, and size, and the size of a range."""

    path: str
    bytes: int
    kind: DumpKind
    range_bytes: int

    def __len__(self) -> int:
        return 1 if self.kind == "gzip" else max(1, -(-self.bytes // self.range_bytes))

    def number_at(self, offset: int) -> int:
        """The range in which that byte of the file lies."""
        return 0 if self.kind == "gzip" else offset // self.range_bytes

    def start(self, number: int) -> int:
        """The range's first byte."""
        return number * self.range_bytes


def fitting_range_bytes(size: int) -> int:
    """The size of a range, for a dump of that size."""
    return min(max(-(-size // _RANGES), MIN_RANGE_BYTES), MAX_RANGE_BYTES)


def dump_kind(head: bytes) -> DumpKind:
    """The kind of a dump's file by its first bytes."""
    if head.startswith(b"BZh"):
        return "bzip2"
    return "gzip" if head.startswith(b"\x1f\x8b") else "xml"


class _Piece(NamedTuple):
    """Some text of a range, and the offset in the file that it reaches to."""

    number: int
    text: bytes
    position: int


class RangeReader:
    """One range's text, from the opened file: ``texts()`` once, then ``link``.

    owns_end: whether the text goes to the dump's end, known behind it.
    """

    def __init__(self, ranges: DumpRanges, number: int, file: BinaryIO, engine: Engine | None = None) -> None:
        self._ranges = ranges
        self._number = number
        self._file = file
        start = ranges.start(number)
        self._blocks = (
            Bzip2Range(file, ranges.path, start, start + ranges.range_bytes, engine)
            if ranges.kind == "bzip2"
            else None
        )
        self.owns_end = False

    @property
    def link(self) -> RangeLink:
        """Facts that the neighbours must fit."""
        return RangeLink() if self._blocks is None else self._blocks.link

    def texts(self) -> Iterator[tuple[bytes, int]]:
        """The text that the range owns, in pieces, each with the offset in the file that it reaches to."""
        begun = self._number == 0
        at, ends = self._number, _PageEnds()
        for number, text, position in _universal_newlines(self._pieces()):
            if number != at:
                at, ends = number, _PageEnds()
            if number == self._number:
                if begun:
                    yield text, position
                elif (end := ends.find(text)) is not None:
                    begun = True
                    yield text[end:], position
            elif not begun:
                return
            elif (end := ends.find(text)) is None:
                yield text, position
            else:
                yield text[:end], position
                return
        self.owns_end = begun

    def _pieces(self) -> Iterator[_Piece]:
        """The text from the range's first byte on, raw. No piece lies in two ranges."""
        if self._blocks is not None:
            for text, offset, end in self._blocks.texts():
                yield _Piece(self._ranges.number_at(offset), text, end)
        elif self._ranges.kind == "gzip":
            for text, position in read_gzip(self._file, self._ranges.path):
                yield _Piece(0, text, position)
        else:
            yield from self._plain_pieces()

    def _plain_pieces(self) -> Iterator[_Piece]:
        at = self._ranges.start(self._number)
        self._file.seek(at)
        while True:
            number = self._ranges.number_at(at)
            text = self._file.read(min(_READ_BYTES, self._ranges.start(number + 1) - at))
            if not text:
                return
            at += len(text)
            yield _Piece(number, text, at)


class _PageEnds:
    """Looks for the first page end in a range's own text, piece by piece."""

    def __init__(self) -> None:
        self._before = b""

    def find(self, text: bytes) -> int | None:
        """Offset in the text behind the page end, None where it is not in what was seen so far."""
        seen = self._before + text
        found = _PAGE_END.search(seen)
        if found is not None:
            return found.end() - len(self._before)
        self._before = seen[-_LONGEST_PAGE_END:]
        return None


def _universal_newlines(pieces: Iterator[_Piece]) -> Iterator[_Piece]:
    r"""The pieces with every ``\r\n`` and ``\r`` as ``\n``.

    Of a ``\r\n`` across two pieces the newline is in the second, so that a piece's text does not depend
    on whether the one before was read.
    """
    waiting: _Piece | None = None
    for piece in pieces:
        if not piece.text:
            continue
        if waiting is not None:
            text = waiting.text[:-1] if piece.text.startswith(b"\n") else waiting.text
            yield waiting._replace(text=_with_newlines(text))
            waiting = None
        if piece.text.endswith(b"\r"):
            waiting = piece
        elif b"\r" in piece.text:
            yield piece._replace(text=_with_newlines(piece.text))
        else:
            yield piece
    if waiting is not None:
        yield waiting._replace(text=_with_newlines(waiting.text))


def _with_newlines(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
