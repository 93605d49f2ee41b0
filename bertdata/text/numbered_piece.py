"""A piece of a source as it travels to the worker that makes documents of it."""

from collections.abc import Sequence
from typing import NamedTuple

from bertdata.sources.piece import SourcePiece


class RecordPlace(NamedTuple):
    """The number of a file, from 0, and of a record in it, from 1."""

    file: int
    record: int


class Duplicate(NamedTuple):
    """A record of a piece, by its number in it, whose text an earlier record has too."""

    number: int
    of: RecordPlace


class NumberedPiece(NamedTuple):
    """A piece of a file: numbers of both, the file's path. duplicates: to leave out."""

    file: int
    number: int
    path: str
    piece: SourcePiece
    duplicates: Sequence[Duplicate] = ()
