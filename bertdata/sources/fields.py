r"""Look up fields of a record by name, and turn a field's value into text.

A name such as ``a.b`` means the field ``b`` inside the field ``a``. A value is a text if it is a string,
bytes in UTF-8, or a list of paragraphs. Paragraphs are joined by blank lines. In this record the field
``body.paragraphs`` has the text "One.\n\nTwo."::

    {"body": {"paragraphs": ["One.", "Two."]}}
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

BETWEEN_PARAGRAPHS = "\n\n"

MISSING = object()
"""Value that ``get_value`` returns for a field that the record does not have."""


class TextFields(NamedTuple):
    """Names of the fields (or columns) of a file that hold text.

    texts: fields that hold strings.
    paragraphs: fields that hold lists of strings, or bytes. The text field is chosen from these only if
        ``texts`` is empty.
    inner: names, such as ``a.b``, of text fields inside other fields. They are read only if the user names
        them.
    """

    texts: list[str]
    paragraphs: list[str]
    inner: list[str]


def get_value(fields: Mapping[str, Any], name: str) -> Any:
    """Return the value of a field, or MISSING if the record lacks it.

    name: name of the field. ``a.b`` means the field ``b`` inside ``a``, unless a field is itself named "a.b".
    """
    if name in fields:
        return fields[name]
    first, dot, rest = name.partition(".")
    inner = fields.get(first)
    return get_value(inner, rest) if dot and isinstance(inner, Mapping) else MISSING


def read_text_value(value: Any, encoding: str = "utf-8") -> str | None:
    """Convert a field's value to a text, or return None if it is not a text.

    A text is a string, bytes, or a list of paragraphs.

    Raises UnicodeDecodeError for bytes that do not belong to the encoding.

    encoding: encoding of bytes.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(encoding)
    if isinstance(value, list) and all(item is None or isinstance(item, str | bytes) for item in value):
        paragraphs = [read_text_value(item, encoding) or "" for item in value if item is not None]
        return BETWEEN_PARAGRAPHS.join(paragraphs)
    return None


def find_texts(value: Any) -> Iterator[str]:
    """Yield every text inside a value of nested lists and dicts, in order. Skips bytes that are not UTF-8."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, bytes):
            with suppress(UnicodeDecodeError):
                yield one.decode()
        elif isinstance(one, dict):
            waiting += reversed(one.values())
        elif isinstance(one, list):
            waiting += reversed(one)
