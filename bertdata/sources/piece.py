"""Interface of pieces. A piece is a group of consecutive records of a source file, which one worker reads."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from bertdata.sources.records import BadRecord, Record
from bertdata.sources.settings import RecordSettings

PIECE_BYTES = 1 << 22
"""Approximate size of a piece in bytes. Never change it: a resumed run starts at a piece boundary."""

Found = list[Record | BadRecord]


class ReadPiece(NamedTuple):
    """The records of a piece, numbered from 1.

    numbers: how many numbers the piece uses up. The next piece goes on counting from there. In JSON lines,
        where records are numbered by line, blank lines use up a number too.
    """

    records: Found
    numbers: int


class SourcePiece(Protocol):
    """Piece of a source file, sent to the worker that reads it.

    bytes: size of the piece in the file, for the progress display.
    """

    @property
    def bytes(self) -> int: ...

    def read(self, settings: RecordSettings) -> ReadPiece:
        """Return the records of the piece.

        Raises InputError if the data are damaged.
        """
        ...


@dataclass(frozen=True, slots=True)
class RowsPiece:
    """A piece whose records the main process has read, because a worker could not start in the middle of the
    file.
    """

    found: Found
    bytes: int

    def read(self, settings: RecordSettings) -> ReadPiece:
        return ReadPiece(self.found, len(self.found))


def number_records(found: Found) -> Found:
    """Return copies of the records, numbered from 1 in their order."""
    return [record._replace(number=number) for number, record in enumerate(found, 1)]
