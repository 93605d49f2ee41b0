"""Checked conversion of JSON objects to NamedTuples and dataclasses.

The JSON comes from manifests and notes (small JSON files about finished pieces), which another version may
have written or a user may have edited.
"""

from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from bertdata.errors import ManifestError

Entry = TypeVar("Entry")

_MOST = 1 << 63


def parse_entry(kind: type[Entry], value: object) -> Entry:
    """Return an instance of a class whose fields have the values of a JSON object.

    Fields may be strings, booleans, non-negative integers, None, and lists and dicts of these. Raises
    ManifestError if a field is missing, unknown or of the wrong type.

    kind: the class, a NamedTuple or a dataclass.
    value: the parsed JSON, which may be anything.
    """
    types = get_type_hints(kind)
    if not isinstance(value, dict) or set(value) != set(types):
        raise ManifestError(f"expected an object of {', '.join(sorted(types))}")
    for name in sorted(types):
        if not _has_type(value[name], types[name]):
            raise ManifestError(f"{name} is {value[name]!r}, expected {types[name]}")
    return kind(**value)


def parse_entry_list(kind: type[Entry], values: object) -> list[Entry]:
    """Return an instance of the class for each object in a JSON list.

    Raises ManifestError if the value is not a list, or if a field is missing, unknown or of the wrong type.

    kind: the class, a NamedTuple or a dataclass.
    """
    if not isinstance(values, list):
        raise ManifestError(f"expected a list, found {values!r}")
    return [parse_entry(kind, value) for value in values]


def parse_number_list(value: object) -> list[int]:
    """Return the value if it is a JSON list of non-negative integers. Raises ManifestError if it is not."""
    if not isinstance(value, list) or not all(_has_type(item, int) for item in value):
        raise ManifestError(f"expected a list of numbers, found {value!r}")
    return value


def _has_type(value: object, kind: Any) -> bool:
    """Return True if a JSON value fits a field's type, such as ``int``, ``str | None`` or ``list[int]``."""
    if kind is int:
        return type(value) is int and 0 <= value < _MOST
    if kind is bool:
        return isinstance(value, bool)
    if kind is str:
        return isinstance(value, str) and _is_unicode(value)
    of = get_args(kind)
    if get_origin(kind) is UnionType:
        return any(value is None if one is NoneType else _has_type(value, one) for one in of)
    if get_origin(kind) is list:
        return isinstance(value, list) and all(_has_type(item, of[0]) for item in value)
    if get_origin(kind) is dict:
        return isinstance(value, dict) and all(
            _has_type(k, of[0]) and _has_type(v, of[1]) for k, v in value.items()
        )
    raise TypeError(f"a field is {kind}")


def _is_unicode(text: str) -> bool:
    """Return True if the text can be encoded in UTF-8.

    A string in JSON can contain a lone surrogate (half of an escape pair), which cannot be encoded.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
