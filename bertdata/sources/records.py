"""A record of a source, and a record that cannot be used."""

from typing import Literal, NamedTuple

Reason = Literal["malformed", "empty", "too_long", "other_language"]

REASONS: tuple[Reason, ...] = ("malformed", "empty", "too_long", "other_language")
"""The counters of records that are left out."""


class Record(NamedTuple):
    """One document. number: of the record in its file, from 1, which of JSON lines is that of the line."""

    number: int
    text: str
    id: str | None = None
    language: str | None = None


class BadRecord(NamedTuple):
    """A record without a usable text. fault: what was found, and what was expected, in words."""

    number: int
    reason: Reason
    fault: str
    id: str | None = None
