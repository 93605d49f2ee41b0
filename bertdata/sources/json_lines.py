"""Turn JSON values into records, for JSON lines, JSON files and the rows of tables."""

import json
import re
from collections.abc import Iterator
from typing import Any

from bertdata.io.foreign_text import MOST_NESTED, TOO_DEEP
from bertdata.io.json_text import parse_json_text
from bertdata.sources.encoding import describe_undecodable
from bertdata.sources.fields import MISSING, get_value, read_text_value
from bertdata.sources.records import BadRecord, Record
from bertdata.sources.settings import RecordSettings

try:  # optional: without orjson, the standard library parses with the same results
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment]

_BRACKETS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_SHOWN = 40
_MOST_BITS = 63
"""Most bits of an integer that every parser reads as the same number. orjson turns larger integers into
floats.
"""

_OF_ANY_LENGTH = json.JSONDecoder(parse_int=str, parse_float=str)


def parse_line(line: bytes) -> Any:
    """Parse a line of JSON.

    Raises ValueError with an explanation if the line is not JSON or is nested too deeply.

    >>> parse_line(b'{"text": "A b."}')
    {'text': 'A b.'}
    """
    # Counting brackets is cheap and excludes nearly all lines, so that the exact depth is rarely needed.
    if line.count(b"[") + line.count(b"{") > MOST_NESTED and _measure_depth(line) > MOST_NESTED:
        raise ValueError(TOO_DEEP)
    if orjson is not None:
        try:
            return orjson.loads(line)
        # orjson refused the line. Let the standard library decide, since its error message explains more.
        except ValueError:
            pass
    return parse_json_text(line.decode(), any_number=True)


def _measure_depth(line: bytes) -> int:
    """Return how deeply the JSON value is nested: the most brackets and braces that are open at once."""
    depth = most = 0
    for found in _BRACKETS.finditer(line):
        mark = found[0]
        depth += mark in b"{["
        most = max(most, depth)
        depth -= mark in b"}]"
    return most


def read_line_records(data: bytes, settings: RecordSettings) -> Iterator[Record | BadRecord]:
    """Yield the record of each line of JSON, numbered by line from 1.

    A blank line gives no record, but counts as a line.
    """
    for number, line in enumerate(data.split(b"\n"), 1):
        if line and not line.isspace():
            yield parse_record(number, line, settings)


def parse_record(number: int, line: bytes, settings: RecordSettings) -> Record | BadRecord:
    """Parse a JSON value into a record. A faulty value gives a BadRecord.

    line: the JSON value. It must be an object, or a string if the settings name no text field.
    """
    if len(line) > settings.raw_bytes:
        return BadRecord(number, "too_long", f"a line of more than {settings.raw_bytes} bytes")
    try:
        value = parse_line(line)
    except UnicodeDecodeError as error:
        return BadRecord(number, "malformed", describe_undecodable(line, error.start, settings.encoding))
    except ValueError as error:
        return BadRecord(number, "malformed", f"is not JSON: {error}")
    if isinstance(value, str) and settings.text_field is None:
        return Record(number, value)
    if not isinstance(value, dict):
        return BadRecord(number, "malformed", f"is JSON, but no object: {_quote_source(line.decode())}")
    return make_record(number, value, settings, line)


def make_record(
    number: int, fields: dict[str, Any], settings: RecordSettings, line: bytes | None = None
) -> Record | BadRecord:
    """Make a record from the fields of an object or a table row. Missing or wrong fields give a BadRecord.

    line: the JSON that the fields were parsed from, None for a table row. Ids and error messages show numbers
        as they are written there, so that they do not depend on the parser.
    """
    name = settings.text_field or ""
    identity = None
    if settings.id_field is not None:
        identity = _format_id(get_value(fields, settings.id_field), settings.id_field, line)
    value = get_value(fields, name)
    if value is MISSING:
        return BadRecord(number, "malformed", f"has no field {name!r}", identity)
    if value is None:
        return BadRecord(number, "empty", f"its field {name!r} is null", identity)
    try:
        text = read_text_value(value, settings.encoding)
    except UnicodeDecodeError as error:
        fault = describe_undecodable(error.object, error.start, settings.encoding)
        return BadRecord(number, "malformed", fault, identity)
    if text is None:
        fault = f"its field {name!r} is {_quote_value(value, name, line)}, expected a text"
        return BadRecord(number, "malformed", fault, identity)
    language = None
    if settings.language_field is not None:
        language = get_value(fields, settings.language_field)
        if language is MISSING or language is None or language == "":
            return Record(number, text, identity)  # ``normalise_texts`` decides what its language is
        if not isinstance(language, str):
            found = _quote_value(language, settings.language_field, line)
            fault = f"its field {settings.language_field!r} is {found}, expected a language"
            return BadRecord(number, "malformed", fault, identity)
    return Record(number, text, identity, language)


def _format_id(value: Any, name: str, line: bytes | None) -> str | None:
    """Return a record's id as text, written as in its source file, or None if the record has no id.

    name: name of the id field.
    line: JSON of the record, or None for a table.
    """
    if value is MISSING or value is None:
        return None
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if line is None or isinstance(value, str) or _is_plain_integer(value):
        return str(value)
    return find_member_source(line.decode(), name)


def _is_plain_integer(value: Any) -> bool:
    """Return True for an integer that JSON can write in only one way. (0 can also be ``-0``.)"""
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return is_integer and value != 0 and value.bit_length() <= _MOST_BITS


def find_member_source(text: str, name: str) -> str:
    """Return the value of an object's member exactly as it is written in the JSON.

    If the object has several members of that name, the last one counts.

    >>> find_member_source('{"id": 1.50, "of": {"id": 1e3}}', "of.id")
    '1e3'
    """
    members = _split_members(text)
    if name in members:
        return members[name]
    first, _, rest = name.partition(".")
    return find_member_source(members[first], rest)


def _split_members(text: str) -> dict[str, str]:
    """Split a valid JSON object into its members: the source text of each value, by name."""
    # Go through an object such as '{"id": 1.50, "of": {}}' member by member. raw_decode finds where a name or
    # a value ends. The value is then cut out of the text as it is written.
    members: dict[str, str] = {}
    at = _skip_blanks(text, 0) + 1
    while text[at := _skip_blanks(text, at)] != "}":
        name, at = _OF_ANY_LENGTH.raw_decode(text, at)
        start = _skip_blanks(text, _skip_blanks(text, at) + 1)  # skip the colon
        at = _OF_ANY_LENGTH.raw_decode(text, start)[1]
        members[name] = text[start:at]
        at = _skip_blanks(text, at)
        at += text[at] == ","
    return members


def _skip_blanks(text: str, at: int) -> int:
    """Return the position of the first character from ``at`` on that is not white space."""
    while text[at] in " \t\n\r":
        at += 1
    return at


def _quote_value(value: Any, name: str, line: bytes | None) -> str:
    """Return a shortened quotation of a field's value, for an error message."""
    if value is MISSING or value is None:
        return "missing or null"
    if line is None or isinstance(value, str):
        return _shorten(repr(value))
    return _shorten(find_member_source(line.decode(), name))


def _quote_source(text: str) -> str:
    """Return a shortened quotation of a value as it is written in the JSON."""
    return _shorten(text.strip())


def _shorten(words: str) -> str:
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}..."
