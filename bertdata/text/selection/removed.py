"""Format the list of records that are left out of the training parts, the file removed.jsonl.

For example, this is the line of a record that has the same text as record 2 of its file::

    {"file": "a.jsonl", "record": 7, "id": "x", "reason": "duplicate", "of": {"file": "a.jsonl", "record": 2}}
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from bertdata.sources.records import BadRecord, Record
from bertdata.text.numbered_piece import RecordPlace
from bertdata.text.selection.ngrams import SharedNgram
from bertdata.text.selection.settings import EvaluationFile


class RemovedRecord(NamedTuple):
    """Record that is left out of the training parts.

    number: number of the record in its piece.
    more: further keys and values of its line in removed.jsonl.
    of: for a duplicate, the position of the first record with the same text. None for other records.
    """

    number: int
    reason: str
    id: str | None
    more: dict[str, Any] = {}  # noqa: RUF012 - never changed
    of: RecordPlace | None = None


def describe_bad_record(record: BadRecord) -> RemovedRecord:
    """Return the entry in removed.jsonl for a record without a usable text."""
    return RemovedRecord(record.number, record.reason, record.id, {"fault": record.fault})


def describe_excluded_record(
    record: Record, shared: SharedNgram, files: Sequence[EvaluationFile]
) -> RemovedRecord:
    """Return the entry in removed.jsonl for a document that shares an n-gram with an evaluation file."""
    more = {"shares": shared.words, "with": files[shared.source].name}
    return RemovedRecord(record.number, "excluded", record.id, more)


def format_removed_records(
    removed: Iterable[RemovedRecord], file: int, before: int, names: Sequence[str]
) -> bytes:
    """Format a piece's removed records as lines of removed.jsonl, in UTF-8.

    file: number of the piece's file.
    before: number of records in the file before the piece.
    names: names of all input files.
    """
    lines = []
    for one in removed:
        place = {"file": names[file], "record": before + one.number}
        identity = {} if one.id is None else {"id": one.id}
        of = {} if one.of is None else {"of": {"file": names[one.of.file], "record": one.of.record}}
        line = {**place, **identity, "reason": one.reason, **one.more, **of}
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    return "".join(lines).encode(errors="backslashreplace")
