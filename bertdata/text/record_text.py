r"""Normalise the text of a record. The result is called its body: its lines that are not blank, each with a
line end.

In the record's text, lines end at ``\n``, ``\r\n`` or ``\r``. Lines of white space are dropped, because an
empty line would end the document. Two records are duplicates if their bodies are equal.
"""

import hashlib
from collections.abc import Iterable

from bertdata.errors import InputError
from bertdata.sources.encoding import describe_undecodable
from bertdata.sources.plain_text import measure_text_lines, split_text_lines
from bertdata.sources.records import BadRecord, Reason, Record
from bertdata.text.languages import EXPECTED_LANGUAGE, find_tagged_language
from bertdata.text.part_settings import PartSettings

HASH_BYTES = 16
_SHOWN = 40


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
    """Normalise the texts and the languages of records.

    Returns the usable records, each with its body in UTF-8, and the unusable records with the reason. With a
    language field, the language of each usable record is the ISO 639-1 code.
    """
    good: list[tuple[Record, bytes]] = []
    bad: list[BadRecord] = []
    for given in records:
        record = given if isinstance(given, BadRecord) else _normalise_language(given, settings)
        body = record if isinstance(record, BadRecord) else _normalise_text(record, settings)
        if isinstance(body, BadRecord):
            bad.append(body)
        elif isinstance(record, Record):
            good.append((record, body))
    return good, bad


def find_first_fault(bad: Iterable[BadRecord]) -> BadRecord | None:
    """Return the first record that ends a run without ``--skip-bad-records``, or None if there is none.

    A record of a language that ``--keep-languages`` does not name has no fault: the user chose to leave it
    out.
    """
    faulty = (one for one in bad if one.reason != "other_language")
    return min(faulty, key=lambda one: one.number, default=None)


def _normalise_language(record: Record, settings: PartSettings) -> Record | BadRecord:
    """Return the record with the ISO 639-1 code of its language, or a BadRecord if the language is unknown
    or not to be kept.

    A record that states no language is of the settings' language, if they have one.
    """
    field = settings.records.language_field
    if field is None:
        return record
    if record.language is None:
        if settings.language is None:
            fault = (
                f"its field {field!r} is missing, null or empty, expected a language such as de; say the "
                "language of all such records: --language CODE"
            )
            return _make_bad_record(record, "malformed", fault)
        code = settings.language
    elif (found := find_tagged_language(record.language)) is not None:
        code = found
    else:
        fault = f"its language {record.language[:_SHOWN]!r} is unknown, expected {EXPECTED_LANGUAGE}"
        return _make_bad_record(record, "malformed", fault)
    if not settings.selection.keeps_language(code):
        kept = settings.selection.keep_languages
        return _make_bad_record(record, "other_language", f"is of language {code!r}, to be kept are {kept}")
    return record._replace(language=code)


def _normalise_text(record: Record, settings: PartSettings) -> bytes | BadRecord:
    """Return the body of a record in UTF-8, or a BadRecord if the record cannot be used."""
    limit = settings.records.max_record_bytes
    if len(record.text) > limit and (size := measure_text_lines(record.text)) > limit:
        return _make_bad_record(record, "too_long", _describe_size(size, limit))
    try:
        body = "".join([line + "\n" for line in split_text_lines(record.text)]).encode()
    except UnicodeEncodeError as error:
        # The reader of CSV keeps a byte that is not UTF-8 as a surrogate from U+DC80 to U+DCFF.
        wrong = error.object[error.start : error.start + 3]
        data = bytes(ord(half) - 0xDC00 for half in wrong if "\udc80" <= half <= "\udcff")
        is_byte = "\udc80" <= wrong[0] <= "\udcff"
        what = describe_undecodable(data, 0, settings.records.encoding) if is_byte else "half a character"
        return _make_bad_record(record, "malformed", what)
    if not body:
        return _make_bad_record(record, "empty", "has no text")
    if len(body) > limit:
        return _make_bad_record(record, "too_long", _describe_size(len(body), limit))
    return body


def _describe_size(size: int, limit: int) -> str:
    return f"its text has {size} bytes, expected at most {limit}"


def _make_bad_record(record: Record, reason: Reason, fault: str) -> BadRecord:
    """Return the BadRecord for a record that cannot be used."""
    return BadRecord(record.number, reason, fault, record.id)


def make_bad_record_error(path: str, numbers: int, bad: BadRecord, *, skips: bool = False) -> InputError:
    """Return the error for an unusable record of a file.

    numbers: number of records in the file before the record's piece. It is added to the number of the record
        in the piece. For JSON lines, blank lines count too.
    skips: True if the run leaves such records out, so that the error does not advise to.
    """
    identity = "" if bad.id is None else f" (id {bad.id})"
    remedy = "repair it" if skips else "repair it, or leave such records out: --skip-bad-records"
    if bad.fault.endswith("is not UTF-8"):
        remedy = f"name its encoding, such as --encoding cp1252, gb18030 or cp1256, {remedy}"
    return InputError(f"{path}: record {numbers + bad.number}: {bad.fault}{identity}; {remedy}")
