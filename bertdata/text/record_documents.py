r"""Records to documents: a worker's part of the text stage of records.

A record is a document. Its lines end at ``\n``, ``\r\n`` or ``\r``; those of white space alone are dropped,
so that none of them ends the document. In a part a line holds a sentence, or with ``--sentences none`` a line
of the text, and an empty line stands behind each document.
"""

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from bertdata.errors import SettingsError
from bertdata.sources.piece import SourcePiece
from bertdata.sources.plain_text import text_lines
from bertdata.sources.records import BadRecord, Reason, Record
from bertdata.text.languages import language_of
from bertdata.text.part_settings import PartSettings
from bertdata.text.splitter import SplitterLoader


class NumberedPiece(NamedTuple):
    """A piece of a file: numbers of both, the file's path."""

    file: int
    number: int
    path: str
    piece: SourcePiece


class PieceText(NamedTuple):
    """The documents of a piece, one behind another.

    ends: of each in ``text``; sizes: bytes of text of each before sentences were split, which parts are cut
    by; sentences: of all. numbers: that its records take. bad: counts by reason, and the first one.
    """

    text: bytes
    ends: Sequence[int]
    sizes: Sequence[int]
    sentences: int
    numbers: int
    bad: dict[Reason, int]
    first_bad: BadRecord | None


@dataclass(frozen=True, slots=True)
class RecordStep:
    """A piece to its documents."""

    settings: PartSettings
    load_splitter: SplitterLoader

    def __call__(self, work: NumberedPiece) -> PieceText:
        read = work.piece.read(self.settings.records)
        bodies: list[bytes] = []
        numbers: list[int] = []
        bad: list[BadRecord] = []
        for record in read.records:
            body = self._body(record)
            if isinstance(body, bytes):
                bodies.append(body)
                numbers.append(record.number)
            else:
                bad.append(body)
        documents = self._documents(bodies, work.path)
        empty = [n for n, document in zip(numbers, documents, strict=True) if len(document) < 2]
        bad += [BadRecord(number, "empty", "has no sentence") for number in empty]
        sizes = array("Q", [len(body) for body, one in zip(bodies, documents, strict=True) if len(one) > 1])
        documents = [document for document in documents if len(document) > 1]
        ends = array("Q", accumulate(map(len, documents)))
        text = b"".join(documents)
        first = min(bad, key=lambda one: one.number, default=None)
        counts = dict(Counter(one.reason for one in bad))
        lines = text.count(b"\n") - len(documents)
        return PieceText(text, ends, sizes, lines, read.numbers, counts, first)

    def _body(self, record: Record | BadRecord) -> bytes | BadRecord:
        """The text's lines that hold something, each with its end. BadRecord for a text not to be used."""
        if isinstance(record, BadRecord):
            return record
        limit = self.settings.records.max_record_bytes
        if record.language is not None and not self._is_of_language(record.language):
            fault = f"is of language {record.language!r}, expected {self.settings.language}"
            return _bad(record, "other_language", fault)
        try:
            body = "".join([line + "\n" for line in text_lines(record.text)]).encode()
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            what = f"byte 0x{ord(half) - 0xDC00:02x} is not UTF-8" if half >= "\udc80" else "half a character"
            return _bad(record, "malformed", what)
        if not body:
            return _bad(record, "empty", "has no text")
        if len(body) > limit:
            return _bad(record, "too_long", f"its text has {len(body)} bytes, expected at most {limit}")
        return body

    def _is_of_language(self, name: str) -> bool:
        code = name.strip().lower().replace("_", "-").partition("-")[0]
        try:
            return language_of(code).code == self.settings.language
        except SettingsError:
            return False

    def _documents(self, bodies: list[bytes], path: str) -> list[bytes]:
        """Each document as it stands in a part, an empty line at its end."""
        if self.settings.sentences == "none":
            return [body + b"\n" for body in bodies]
        if self.settings.sentences == "lines":
            return [_stripped_lines(body) for body in bodies]
        if not bodies:
            return []
        text = self.load_splitter().segment_lines(b"\n".join(bodies) + b"\n", path)
        documents, start = [], 0
        for _ in bodies:
            empty = text.startswith(b"\n", start)  # no sentence was found
            end = start + 1 if empty else text.index(b"\n\n", start) + 2
            documents.append(text[start:end])
            start = end
        return documents


def _stripped_lines(body: bytes) -> bytes:
    return "".join([line.strip() + "\n" for line in body.decode().split("\n")]).encode()


def _bad(record: Record, reason: Reason, fault: str) -> BadRecord:
    identity = "" if record.id is None else f" (id {record.id})"
    return BadRecord(record.number, reason, f"{fault}{identity}")
