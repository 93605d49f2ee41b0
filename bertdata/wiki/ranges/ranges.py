"""Divides a dump into byte ranges, each of which is read by a different worker.

The raw text of a range is the decompressed text of all bzip2 blocks that start in it. If the dump is not
compressed, the raw text is the bytes of the range. A gzip file is a single range.

A page may cross the border between two raw texts. Pages are therefore assigned to ranges by page ends: a
range owns the text from the first page end in its raw text up to the first page end in the raw text of a
later range. The first range also owns the text before its first page end. A range whose raw text has no page
end owns no text.

A page end is a line that consists of ``</page>`` and blanks. The line feeds before and after this line must
be in the same raw text. Otherwise the worker of a range and the worker of the range before might find
different page ends.
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
"""Largest range of a compressed dump, in bytes of the file.

A range of this size has about 150 MB of text. The bzip2 blocks near the border of two ranges are read by two
workers, but they are only a small part of the range.
"""

MIN_RANGE_BYTES = 256 << 10
_RANGES = 64
"""Number of ranges into which a dump of medium size is divided. No more workers than ranges can be used."""

DumpKind = Literal["xml", "bzip2", "gzip"]

_READ_BYTES = 1 << 20
_PAGE_END = re.compile(rb"\n[ \t]{0,64}</page>[ \t]{0,64}\n")
_LONGEST_PAGE_END = 64 + len(b"\n</page>\n") + 64


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpRanges:
    """Division of a dump into byte ranges of equal size.

    path: path or URL of the dump.
    bytes: size of the dump's file in bytes.
    kind: how the dump is compressed.
    range_bytes: size of a range in bytes of the file. A gzip file is a single range.
    """

    path: str
    bytes: int
    kind: DumpKind
    range_bytes: int

    def __len__(self) -> int:
        return 1 if self.kind == "gzip" else max(1, -(-self.bytes // self.range_bytes))

    def find_range_number(self, offset: int) -> int:
        """Return the number of the range that contains a byte of the file.

        offset: offset of the byte.
        """
        return 0 if self.kind == "gzip" else offset // self.range_bytes

    def find_range_start(self, number: int) -> int:
        """Return the offset in the file of the first byte of a range."""
        return number * self.range_bytes


def choose_range_bytes(size: int) -> int:
    """Choose the size of the ranges for a dump: so large that there are about 64 ranges, but within limits.

    size: size of the dump's file in bytes.
    """
    return min(max(-(-size // _RANGES), MIN_RANGE_BYTES), MAX_RANGE_BYTES)


def recognise_dump(head: bytes) -> DumpKind:
    """Return how a dump is compressed.

    head: first bytes of the dump's file.
    """
    if head.startswith(b"BZh"):
        return "bzip2"
    return "gzip" if head.startswith(b"\x1f\x8b") else "xml"


class _Piece(NamedTuple):
    """Piece of decompressed text.

    number: number of the range that the piece belongs to.
    position: number of bytes of the dump's file read so far.
    """

    number: int
    text: bytes
    position: int


class RangeReader:
    """Reader of the text that a range owns. Iterate ``read_texts()`` once, then use ``link`` and
    ``owns_end``.

    owns_end: whether this text includes the end of the dump.
    """

    def __init__(self, ranges: DumpRanges, number: int, file: BinaryIO, engine: Engine | None = None) -> None:
        self._ranges = ranges
        self._number = number
        self._file = file
        start = ranges.find_range_start(number)
        self._blocks = (
            Bzip2Range(file, ranges.path, start, start + ranges.range_bytes, engine)
            if ranges.kind == "bzip2"
            else None
        )
        self.owns_end = False

    @property
    def link(self) -> RangeLink:
        """Start, end and checksums of the range.

        They are later compared with those of the ranges before and after it.
        """
        return RangeLink() if self._blocks is None else self._blocks.link

    def read_texts(self) -> Iterator[tuple[bytes, int]]:
        """Yield the text that the range owns, in pieces.

        The docstring of this module says which text that is.

        Yields with each piece the number of bytes of the file read so far.
        """
        # For example, three ranges have the raw texts "aa|bb", "cc" and "d|ee", in which "|" is a page end.
        # Range 0 owns "aa|bbccd|", range 1 owns nothing, and range 2 owns "ee". A worker therefore reads on
        # after its range, up to the first page end in a later range. ``at`` is the number of the range of the
        # current piece. The search for a page end starts afresh in each range.
        begun = self._number == 0
        at, ends = self._number, _PageEnds()
        for number, text, position in _normalise_newlines(self._read_pieces()):
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

    def _read_pieces(self) -> Iterator[_Piece]:
        """Yield the decompressed text from the first byte of the range on. No piece belongs to two ranges."""
        if self._blocks is not None:
            for text, offset, end in self._blocks.read_texts():
                yield _Piece(self._ranges.find_range_number(offset), text, end)
        elif self._ranges.kind == "gzip":
            for text, position in read_gzip(self._file, self._ranges.path):
                yield _Piece(0, text, position)
        else:
            yield from self._read_plain_pieces()

    def _read_plain_pieces(self) -> Iterator[_Piece]:
        """Yield the text of a dump that is not compressed, from the first byte of the range on."""
        at = self._ranges.find_range_start(self._number)
        self._file.seek(at)
        while True:
            number = self._ranges.find_range_number(at)
            text = self._file.read(min(_READ_BYTES, self._ranges.find_range_start(number + 1) - at))
            if not text:
                return
            at += len(text)
            yield _Piece(number, text, at)


class _PageEnds:
    """Search for the first page end in the raw text of a range, which comes in pieces."""

    def __init__(self) -> None:
        self._before = b""

    def find(self, text: bytes) -> int | None:
        """Search the next piece of text for a page end.

        Returns the offset after the page end in this piece. Returns None if there is none.
        """
        seen = self._before + text
        found = _PAGE_END.search(seen)
        if found is not None:
            return found.end() - len(self._before)
        self._before = seen[-_LONGEST_PAGE_END:]
        return None


def _normalise_newlines(pieces: Iterator[_Piece]) -> Iterator[_Piece]:
    r"""Yield the pieces with every ``\r\n`` and ``\r`` replaced by ``\n``.

    If a ``\r\n`` is divided between two pieces, the ``\n`` goes to the second piece. The text of a piece is
    therefore the same whether or not the piece before it was read.
    """
    # If a piece ends with "\r", wait for the next piece. The pieces "a\r" and "\nb" become "a" and "\nb". The
    # pieces "a\r" and "b" become "a\n" and "b".
    waiting: _Piece | None = None
    for piece in pieces:
        if not piece.text:
            continue
        if waiting is not None:
            text = waiting.text[:-1] if piece.text.startswith(b"\n") else waiting.text
            yield waiting._replace(text=_replace_line_ends(text))
            waiting = None
        if piece.text.endswith(b"\r"):
            waiting = piece
        elif b"\r" in piece.text:
            yield piece._replace(text=_replace_line_ends(piece.text))
        else:
            yield piece
    if waiting is not None:
        yield waiting._replace(text=_replace_line_ends(waiting.text))


def _replace_line_ends(text: bytes) -> bytes:
    r"""Replace every ``\r\n`` and ``\r`` by ``\n``."""
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
