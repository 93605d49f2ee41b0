r"""Normalise the text of a record. The result is called its body: its lines that are not blank, each with a
line end.

In the record's text, lines end at ``\n``, ``\r\n`` or ``\r``. Lines of white space are dropped, because an
empty line would end the document. Two records are duplicates if their bodies are equal.
"""

import hashlib
from collections.abc import Iterable

from bertdata.errors import InputError, SettingsError
from bertdata.sources.plain_text import measure_text_lines, split_text_lines
from bertdata.sources.records import BadRecord, Reason, Record
from bertdata.text.languages import find_language
from bertdata.text.part_settings import PartSettings

HASH_BYTES = 16


def hash_text(body: bytes) -> bytes:
    """Return the hash of a record's text: BLAKE2b of 128 bits.

    Among ten billion different texts, two have the same hash with a probability of 1.5e-19.
    """
    return hashlib.blake2b(body, digest_size=HASH_BYTES).digest()


def is_held_out(text_hash: bytes, limit: int) -> bool:
    """Return True if the document with this hash is held out of training.

    limit: value below which the first 64 bits of the hash must be, ``SelectionSettings.hash_limit``.
    """
    return int.from_bytes(text_hash[:8], "big") < limit


def normalise_texts(
    records: Iterable[Record | BadRecord], settings: PartSettings
) -> tuple[list[tuple[Record, bytes]], list[BadRecord]]:
    """Normalise the texts of records.

    Returns the usable records, each with its body in UTF-8, and the unusable records with the reason.
    """
    good: list[tuple[Record, bytes]] = []
    bad: list[BadRecord] = []
    for record in records:
        body = record if isinstance(record, BadRecord) else _normalise_text(record, settings)
        if isinstance(body, BadRecord):
            bad.append(body)
        elif isinstance(record, Record):
            good.append((record, body))
    return good, bad


def _normalise_text(record: Record, settings: PartSettings) -> bytes | BadRecord:
    """Return the body of a record in UTF-8, or a BadRecord if the record cannot be used."""
    limit = settings.records.max_record_bytes
    if record.language is not None and not _is_of_language(record.language, settings.language):
        fault = f"is of language {record.language!r}, expected {settings.language}"
        return _make_bad_record(record, "other_language", fault)
    if len(record.text) > limit and (size := measure_text_lines(record.text)) > limit:
        return _make_bad_record(record, "too_long", _describe_size(size, limit))
    try:
        body = "".join([line + "\n" for line in split_text_lines(record.text)]).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        what = f"byte 0x{ord(half) - 0xDC00:02x} is not UTF-8" if half >= "\udc80" else "half a character"
        return _make_bad_record(record, "malformed", what)
    if not body:
        return _make_bad_record(record, "empty", "has no text")
    if len(body) > limit:
        return _make_bad_record(record, "too_long", _describe_size(len(body), limit))
    return body


def _describe_size(size: int, limit: int) -> str:
    return f"its text has {size} bytes, expected at most {limit}"


def _is_of_language(name: str, code: str) -> bool:
    """Return True if the record's language field names the language with this code."""
    given = name.strip().lower().replace("_", "-").partition("-")[0]
    try:
        return find_language(given).code == code
    except SettingsError:
        return False


def _make_bad_record(record: Record, reason: Reason, fault: str) -> BadRecord:
    """Return the BadRecord for a record that cannot be used."""
    return BadRecord(record.number, reason, fault, record.id)


def make_bad_record_error(path: str, numbers: int, bad: BadRecord) -> InputError:
    """Return the error for an unusable record of a file.

    numbers: number of records in the file before the record's piece. It is added to the number of the record
        in the piece. For JSON lines, blank lines count too.
    """
    identity = "" if bad.id is None else f" (id {bad.id})"
    return InputError(
        f"{path}: record {numbers + bad.number}: {bad.fault}{identity}; repair it, or leave such records "
        "out: --skip-bad-records"
    )
