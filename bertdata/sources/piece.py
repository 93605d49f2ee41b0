"""A piece of a source: consecutive records, read by one worker."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from bertdata.sources.records import BadRecord, Record
from bertdata.sources.settings import RecordSettings

PIECE_BYTES = 1 << 22
"""Bytes of a piece, about. A run that is taken up begins with a piece, so they never change."""

Found = list[Record | BadRecord]


class ReadPiece(NamedTuple):
    """The records of a piece, numbered from 1. numbers: how many it takes, for blank lines of JSON too."""

    records: Found
    numbers: int


class SourcePiece(Protocol):
    """Travels to the worker that reads it. bytes: of the file, for progress."""

    @property
    def bytes(self) -> int: ...

    def read(self, settings: RecordSettings) -> ReadPiece:
        """Its records. InputError for data that are damaged."""
        ...


@dataclass(frozen=True, slots=True)
class RowsPiece:
    """Records that were read already, from a file that must be read from its begin."""

    found: Found
    bytes: int

    def read(self, settings: RecordSettings) -> ReadPiece:
        return ReadPiece(self.found, len(self.found))


def numbered(found: Found) -> Found:
    """The records numbered from 1."""
    return [record._replace(number=number) for number, record in enumerate(found, 1)]
