"""Find out which fields of a JSON file hold text, from its first objects."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertdata.errors import InputError
from bertdata.io.file_kind import HEAD_BYTES, find_kind, list_json_members
from bertdata.sources.fields import TextFields


def find_text_fields(objects: Sequence[Mapping[str, Any]]) -> TextFields:
    """Return the names of the fields that hold text in any of these objects, in the order in which they
    occur.
    """
    texts: dict[str, None] = {}
    paragraphs: dict[str, None] = {}
    inner: dict[str, None] = {}
    for value in objects:
        for name, item in value.items():
            if isinstance(item, str):
                texts[name] = None
            elif _is_list_of_texts(item):
                paragraphs[name] = None
            elif isinstance(item, dict):
                inner |= dict.fromkeys(_find_inner_fields(item, f"{name}."))
    return TextFields(list(texts), [name for name in paragraphs if name not in texts], list(inner))


def _is_list_of_texts(value: Any) -> bool:
    """Return True if the value is a list of strings that is not empty."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _find_inner_fields(value: Mapping[str, Any], before: str) -> Iterator[str]:
    """Yield the names of text fields inside an object, such as ``a.b``.

    before: name of the object and a dot, such as ``a.``.
    """
    for name, item in value.items():
        if isinstance(item, str) or _is_list_of_texts(item):
            yield before + name
        elif isinstance(item, dict):
            yield from _find_inner_fields(item, f"{before}{name}.")


def find_text_fields_in_head(head: bytes) -> TextFields:
    """Return the names of the fields with strings, if only the beginning of an object is known."""
    found = [(depth, name) for depth, name in list_json_members(head)]
    least = min((depth for depth, _ in found), default=0)
    return TextFields(list(dict.fromkeys(name for depth, name in found if depth == least)), [], [])


def refuse_inner_records(head: bytes, path: str) -> None:
    """Raise InputError if a file looks like one object that contains a list of objects.

    The objects in the list are then probably the records. The error says how to extract them.

    head: first bytes of the file.
    """
    if re.search(rb"\[\s*\{", head) is None:
        return
    kind = find_kind(head, path, whole=len(head) < HEAD_BYTES)
    remedy = "take them out" if kind is None else kind.remedy
    raise InputError(
        f"{path}: is one object of JSON that holds a list of others; if those are the records, {remedy}; "
        "if it is one record, name its field: --text-field NAME"
    )
