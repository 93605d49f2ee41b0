"""JSON, one object a line: the text of a line's record."""

from collections.abc import Iterator
from typing import Any

from bertdata.io.foreign_text import MOST_NESTED, TOO_DEEP, is_nested_too_deeply
from bertdata.io.json_text import parse_json_text
from bertdata.sources.records import BadRecord, Record
from bertdata.sources.settings import RecordSettings

try:  # by the standard library, with the same results, where it is not installed
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment]

_SHOWN = 40


def parse_line(line: bytes) -> Any:
    """The line's JSON value. ValueError in words for what is none, or is nested too deeply.

    A number that Python does not hold is no fault of a record, whose text it may stand next to.

    >>> parse_line(b'{"text": "A b."}')
    {'text': 'A b.'}
    """
    if orjson is None:
        return parse_json_text(line.decode(), any_number=True)
    try:
        value = orjson.loads(line)
    except ValueError:  # the standard library decides, and says why
        return parse_json_text(line.decode(), any_number=True)
    if line.count(b"[") + line.count(b"{") > MOST_NESTED and is_nested_too_deeply(value):
        raise ValueError(TOO_DEEP)
    return value


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
