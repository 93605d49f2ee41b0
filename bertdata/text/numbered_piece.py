"""A piece of a source, as it is sent to the worker that turns it into documents."""

from collections.abc import Sequence
from typing import NamedTuple

from bertdata.sources.piece import SourcePiece


class RecordPlace(NamedTuple):
    """Position of a record: number of its file from 0, and number of the record in the file from 1."""

    file: int
    record: int


class Duplicate(NamedTuple):
    """Record whose text an earlier record also has.

    number: number of the record in its piece.
    of: position of the first record with the same text.
    """

    number: int
    of: RecordPlace


class NumberedPiece(NamedTuple):
    """Piece of a file, with its position.

    file, number: number of the file, and of the piece in the file.
    path: path of the file.
    duplicates: records of the piece to leave out.
    """

    file: int
    number: int
    path: str
    piece: SourcePiece
    duplicates: Sequence[Duplicate] = ()
