"""Entries of manifests read back from JSON that may be of another version or edited."""

from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from bertdata.errors import ManifestError

Entry = TypeVar("Entry")

_MOST = 1 << 63


def parse_entry(kind: type[Entry], value: object) -> Entry:
    """The record of these fields. ManifestError where one is missing, unknown or of another type.

    Its fields may be texts, numbers from 0, lists of these, objects of these by name, and null.
    """
    types = get_type_hints(kind)
    if not isinstance(value, dict) or set(value) != set(types):
        raise ManifestError(f"expected an object of {', '.join(sorted(types))}")
    for name in sorted(types):
        if not _is(value[name], types[name]):
            raise ManifestError(f"{name} is {value[name]!r}, expected {types[name]}")
    return kind(**value)


def parse_entry_list(kind: type[Entry], values: object) -> list[Entry]:
    """The records of a list. Errors as from parse_entry."""
    if not isinstance(values, list):
        raise ManifestError(f"expected a list, found {values!r}")
    return [parse_entry(kind, value) for value in values]


def parse_numbers(value: object) -> list[int]:
    """The list of numbers from 0. ManifestError for anything else."""
    if not isinstance(value, list) or not all(_is(item, int) for item in value):
        raise ManifestError(f"expected a list of numbers, found {value!r}")
    return value


def _is(value: object, kind: Any) -> bool:
    if kind is int:
        return type(value) is int and 0 <= value < _MOST
    if kind is bool:
        return isinstance(value, bool)
    if kind is str:
        return isinstance(value, str) and _is_unicode(value)
    of = get_args(kind)
    if get_origin(kind) is UnionType:
        return any(value is None if one is NoneType else _is(value, one) for one in of)
    if get_origin(kind) is list:
        return isinstance(value, list) and all(_is(item, of[0]) for item in value)
    if get_origin(kind) is dict:
        return isinstance(value, dict) and all(_is(k, of[0]) and _is(v, of[1]) for k, v in value.items())
    raise TypeError(f"a field is {kind}")


def _is_unicode(text: str) -> bool:
    """True for a text that UTF-8 can hold: JSON can also name single surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
