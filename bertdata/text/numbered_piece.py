"""A piece of a source file, that is, a range of its records, in the form that is sent to a worker."""

from collections.abc import Sequence
from typing import NamedTuple

from bertdata.sources.piece import SourcePiece


class RecordPlace(NamedTuple):
    """Position of a record in the input.

    file: number of its file, from 0.
    record: number of the record in the file, from 1.
    """

    file: int
    record: int


class Duplicate(NamedTuple):
    """A record whose text occurred in an earlier record.

    number: number of the record in its piece.
    of: position of the first record with the same text.
    """

    number: int
    of: RecordPlace


class NumberedPiece(NamedTuple):
    """A piece of a source file (a range of its records), with its position in the input.

    file: number of the file, from 0.
    number: number of the piece in the file, from 0.
    path: path of the file.
    duplicates: records of the piece to leave out, because an earlier record has the same text.
    """

    file: int
    number: int
    path: str
    piece: SourcePiece
    duplicates: Sequence[Duplicate] = ()
