"""The two types of records: a usable record, and a record that cannot be used, with the reason."""

from typing import Literal, NamedTuple

Reason = Literal["malformed", "empty", "too_long", "other_language"]

REASONS: tuple[Reason, ...] = ("malformed", "empty", "too_long", "other_language")
"""Reasons for which a record is left out. For every reason there is a counter of the same name."""


class Record(NamedTuple):
    """A document of a source file.

    number: number of the record in its file, from 1. In JSON lines it is the number of the line.
    text: the document's text.
    id: value of the record's id field. None: the record has no id.
    language: language of the text. It is as the record states it, until ``normalise_texts`` replaces it by
        the ISO 639-1 code. None: the record states none.
    """

    number: int
    text: str
    id: str | None = None
    language: str | None = None


class BadRecord(NamedTuple):
    """A record that cannot be used.

    number: number of the record in its file, counted as for ``Record``.
    reason: why it cannot be used, one of REASONS.
    fault: what is wrong with the record, in words for an error message.
    id: value of the record's id field. None: it has no id, or the id cannot be read.
    """

    number: int
    reason: Reason
    fault: str
    id: str | None = None
