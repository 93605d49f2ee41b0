"""JSON, one object a line: the text of a line's record."""

import re
from collections.abc import Iterator
from typing import Any

from bertdata.io.json_text import parse_json_text
from bertdata.sources.records import BadRecord, Record
from bertdata.sources.settings import RecordSettings

try:  # by the standard library, with the same results, where it is not installed
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment]

MOST_NESTED = 500
"""Depth of the values in a line. Parsers have limits of their own, beyond this one."""

_BRACKETS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_SHOWN = 40


def parse_line(line: bytes) -> Any:
    """The line's JSON value. ValueError in words for what is none, or is nested too deeply.

    >>> parse_line(b'{"text": "A b."}')
    {'text': 'A b.'}
    """
    if line.count(b"[") + line.count(b"{") > MOST_NESTED and _depth(line) > MOST_NESTED:
        raise ValueError(f"its values are nested more than {MOST_NESTED} deep")
    if orjson is not None:
        try:
            return orjson.loads(line)
        except ValueError:  # the standard library decides, and says why
            pass
    return parse_json_text(line.decode())


def _depth(line: bytes) -> int:
    """The largest number of brackets that are open at once."""
    depth = most = 0
    for found in _BRACKETS.finditer(line):
        mark = found[0]
        depth += mark in b"{["
        most = max(most, depth)
        depth -= mark in b"}]"
    return most


def line_records(data: bytes, settings: RecordSettings) -> Iterator[Record | BadRecord]:
    """The records of whole lines, numbered by line. Blank lines hold none."""
    for number, line in enumerate(data.split(b"\n"), 1):
        if line and not line.isspace():
            yield _record(number, line, settings)


def _record(number: int, line: bytes, settings: RecordSettings) -> Record | BadRecord:
    if len(line) > settings.raw_bytes:
        return BadRecord(number, "too_long", f"a line of more than {settings.raw_bytes} bytes")
    try:
        value = parse_line(line)
    except UnicodeDecodeError as error:
        return BadRecord(number, "malformed", f"byte 0x{line[error.start]:02x} is not UTF-8")
    except ValueError as error:
        return BadRecord(number, "malformed", f"is not JSON: {error}")
    if not isinstance(value, dict):
        return BadRecord(number, "malformed", f"is JSON, but no object: {shown(value)}")
    return record_of(number, value, settings)


def record_of(number: int, fields: dict[str, Any], settings: RecordSettings) -> Record | BadRecord:
    """The record with these fields."""
    name = settings.text_field or ""
    value = None if settings.id_field is None else fields.get(settings.id_field)
    identity = None if value is None else str(value)
    if name not in fields:
        return BadRecord(number, "malformed", f"has no field {name!r}", identity)
    text = fields[name]
    if text is None:
        return BadRecord(number, "empty", f"its field {name!r} is null", identity)
    if not isinstance(text, str):
        fault = f"its field {name!r} is {shown(text)}, expected a text"
        return BadRecord(number, "malformed", fault, identity)
    language = None
    if settings.language_field is not None:
        language = fields.get(settings.language_field)
        if not isinstance(language, str):
            fault = f"its field {settings.language_field!r} is {shown(language)}, expected a language"
            return BadRecord(number, "malformed", fault, identity)
    return Record(number, text, identity, language)


def shown(value: Any) -> str:
    """A value in words, cut short."""
    words = "missing or null" if value is None else repr(value)
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}..."
