"""Fields of a record by name, one within another by ``a.b``, and the text in a field's value.

A text is a string, or a list of paragraphs, which blank lines join, or bytes that are UTF-8::

    {"body": {"paragraphs": ["One.", "Two."]}}   body.paragraphs: "One.\n\nTwo."
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

BETWEEN_PARAGRAPHS = "\n\n"

MISSING = object()
"""Stands for a field that a record does not have."""


class TextFields(NamedTuple):
    """The fields of texts of a file.

    texts: strings. paragraphs: lists of strings, and bytes; one of them is found by itself where there are no
    strings. inner: both within other fields, which are read where they are named.
    """

    texts: list[str]
    paragraphs: list[str]
    inner: list[str]


def value_at(fields: Mapping[str, Any], name: str) -> Any:
    """Return the value of the field, MISSING where there is none. A name with dots is looked for first."""
    if name in fields:
        return fields[name]
    first, dot, rest = name.partition(".")
    inner = fields.get(first)
    return value_at(inner, rest) if dot and isinstance(inner, Mapping) else MISSING


def text_of_value(value: Any) -> str | None:
    """Return the text in a field's value, None where it is none.

    UnicodeDecodeError for bytes that are not UTF-8.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list) and all(item is None or isinstance(item, str | bytes) for item in value):
        return BETWEEN_PARAGRAPHS.join(text_of_value(item) or "" for item in value if item is not None)
    return None


def texts_in(value: Any) -> Iterator[str]:
    """All texts within a value, at any depth, in order. Bytes that are not UTF-8 are none."""
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
