"""The two types of records: a usable record, and a record that cannot be used, with the reason."""

from typing import Literal, NamedTuple

Reason = Literal["malformed", "empty", "too_long", "other_language"]

REASONS: tuple[Reason, ...] = ("malformed", "empty", "too_long", "other_language")
"""Reasons for which a record is left out. Each has a counter of this name."""


class Record(NamedTuple):
    """One document of a source file.

    number: number of the record in its file, from 1. For JSON lines it is the line number.
    """

    number: int
    text: str
    id: str | None = None
    language: str | None = None


class BadRecord(NamedTuple):
    """Record without a usable text.

    number: number of the record, counted as for ``Record``.
    fault: what is wrong with the record, in words for an error message.
    """

    number: int
    reason: Reason
    fault: str
    id: str | None = None
