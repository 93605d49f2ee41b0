"""A small JSON Schema validator (draft 2020-12) for the keywords that this package's schemas use.

The package jsonschema would do the same, but it is slow to import and not always installed. Tests compare the
two.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

Schema = Mapping[str, Any] | bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A value that does not fit its schema.

    path: keys and indices from the root to the value.
    keyword, rule: the schema keyword that failed and its argument, such as "minimum" and 1.
    message: the same text as jsonschema's.
    """

    path: tuple[str | int, ...]
    keyword: str
    rule: Any
    value: Any
    message: str


def faults(value: Any, schema: Schema) -> Iterator[Fault]:
    """Yield every fault of the value, in the order of the schema's keywords."""
    yield from _faults(value, schema, schema, ())


def first_fault(value: Any, schema: Schema) -> Fault | None:
    """Return the fault with the shortest path, or None if the value fits."""
    found = list(faults(value, schema))
    return min(found, key=lambda fault: len(fault.path)) if found else None


def _faults(value: Any, schema: Schema, root: Schema, path: tuple[str | int, ...]) -> Iterator[Fault]:
    # ``true`` allows every value and ``false`` none.
    """Yield the faults of a value. root: the whole schema, for references. path: to the value."""
    if isinstance(schema, bool):
        if not schema:
            message = f"False schema does not allow {value!r}"
            yield Fault(path=path, keyword="", rule=False, value=value, message=message)
        return
    for keyword, rule in schema.items():
        if keyword == "$ref":
            yield from _faults(value, _resolve(root, rule), root, path)
        elif keyword in _APPLIED:
            for inner, part, place in _APPLIED[keyword](value, rule, schema):
                yield from _faults(inner, part, root, (*path, *place))
        elif keyword == "anyOf":
            yield from _any_of(value, rule, root, path)
        # "then" and "else" are handled here, together with "if". On their own they mean nothing.
        elif keyword == "if":
            holds = not any(_faults(value, rule, root, path))
            yield from _faults(value, schema.get("then" if holds else "else", True), root, path)
        # additionalProperties is in both tables: as a schema it applies to parts, as ``false`` it is a check.
        for message in _CHECKS.get(keyword, _no_message)(value, rule, schema):
            yield Fault(path=path, keyword=keyword, rule=rule, value=value, message=message)


def _resolve(root: Schema, reference: str) -> Schema:
    """Return the part of the root schema that a reference such as ``#/$defs/NAME`` points to."""
    part: Any = root
    for name in reference.removeprefix("#/").split("/"):
        part = part[name]
    found: Schema = part
    return found


def _any_of(
    value: Any, rules: Sequence[Schema], root: Schema, path: tuple[str | int, ...]
) -> Iterator[Fault]:
    """Yield nothing if one of the alternative schemas fits, else the most helpful faults.

    These are the faults of the first alternative that at least allows the value's type. If no alternative
    allows the type, a single fault says that none fits.
    """
    found = [list(_faults(value, rule, root, path)) for rule in rules]
    if not all(found):
        return
    of_type = [each for each in found if not any(one.keyword == "type" and one.path == path for one in each)]
    if of_type:
        yield from of_type[0]
        return
    message = f"{value!r} is not valid under any of the given schemas"
    yield Fault(path=path, keyword="anyOf", rule=rules, value=value, message=message)


# --- Keywords that apply a schema to parts of the value. Each yields (part, its schema, path to it). ------


def _properties(value: Any, rule: Any, schema: Any) -> Iterator[tuple[Any, Schema, tuple[str, ...]]]:
    if isinstance(value, Mapping):
        yield from ((value[name], part, (name,)) for name, part in rule.items() if name in value)


def _pattern_properties(value: Any, rule: Any, schema: Any) -> Iterator[tuple[Any, Schema, tuple[str, ...]]]:
    if isinstance(value, Mapping):
        for pattern, part in rule.items():
            yield from ((value[name], part, (name,)) for name in value if _pattern(pattern).search(name))


def _additional(value: Any, rule: Any, schema: Any) -> Iterator[tuple[Any, Schema, tuple[str, ...]]]:
    if isinstance(value, Mapping) and rule is not False:
        yield from ((value[name], rule, (name,)) for name in _extra_names(value, schema))


def _items(value: Any, rule: Any, schema: Any) -> Iterator[tuple[Any, Schema, tuple[int, ...]]]:
    if isinstance(value, list | tuple):
        yield from ((item, rule, (index,)) for index, item in enumerate(value))


def _names(value: Any, rule: Any, schema: Any) -> Iterator[tuple[Any, Schema, tuple[()]]]:
    if isinstance(value, Mapping):
        yield from ((name, rule, ()) for name in value)


def _all_of(value: Any, rule: Any, schema: Any) -> Iterator[tuple[Any, Schema, tuple[()]]]:
    yield from ((value, part, ()) for part in rule)


_APPLIED: dict[str, Callable[[Any, Any, Any], Iterator[tuple[Any, Schema, tuple[Any, ...]]]]] = {
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "items": _items,
    "propertyNames": _names,
    "allOf": _all_of,
}


# --- Keywords that constrain the value itself. Each yields a message per violation. -----------------------


def _no_message(value: Any, rule: Any, schema: Any) -> Iterator[str]:
    """Yield no message. Default for keywords that are not checks."""
    yield from ()


def _type(value: Any, rule: Any, schema: Any) -> Iterator[str]:
    kinds = [rule] if isinstance(rule, str) else rule
    if not any(_TYPES[kind](value) for kind in kinds):
        yield f"{value!r} is not of type {', '.join(map(repr, kinds))}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}


def _equal(one: Any, other: Any) -> bool:
    """Compare as JSON does, where true is different from 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _enum(value: Any, rule: Any, schema: Any) -> Iterator[str]:
    if not any(_equal(value, one) for one in rule):
        yield f"{value!r} is not one of {rule!r}"


def _const(value: Any, rule: Any, schema: Any) -> Iterator[str]:
    if not _equal(value, rule):
        yield f"{rule!r} was expected"


def _bound_check(fails: Callable[[Any, Any], bool], words: str) -> Callable[[Any, Any, Any], Iterator[str]]:
    """Return the check of a numeric bound. fails(value, bound): True if the value violates the bound."""

    def check(value: Any, rule: Any, schema: Any) -> Iterator[str]:
        if _is_number(value) and fails(value, rule):  # bounds apply to numbers only
            yield f"{value!r} is {words} {rule!r}"

    return check


def _size_check(kind: type[list[Any]] | type[str], least: bool) -> Callable[[Any, Any, Any], Iterator[str]]:
    """Return the check of a minimum or maximum length of a list or text."""

    def check(value: Any, rule: Any, schema: Any) -> Iterator[str]:
        if isinstance(value, kind) and (len(value) < rule if least else len(value) > rule):
            yield f"{value!r} {_size_words(rule, least)}"

    return check


def _size_words(rule: int, least: bool) -> str:
    if least:
        return "should be non-empty" if rule == 1 else "is too short"
    return "is expected to be empty" if rule == 0 else "is too long"


def _matches(value: Any, rule: Any, schema: Any) -> Iterator[str]:
    if isinstance(value, str) and not _pattern(rule).search(value):
        yield f"{value!r} does not match {rule!r}"


def _required(value: Any, rule: Any, schema: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (f"{name!r} is a required property" for name in rule if name not in value)


def _dependent(value: Any, rule: Any, schema: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, others in rule.items():
            if name in value:
                yield from (
                    f"{other!r} is a dependency of {name!r}" for other in others if other not in value
                )


def _no_others(value: Any, rule: Any, schema: Any) -> Iterator[str]:
    if isinstance(value, Mapping) and rule is False and (extra := _extra_names(value, schema)):
        one, names = len(extra) == 1, ", ".join(map(repr, sorted(extra)))
        if patterns := ", ".join(map(repr, sorted(schema.get("patternProperties", ())))):
            yield f"{names} {'does' if one else 'do'} not match any of the regexes: {patterns}"
            return
        verb = "was" if one else "were"
        yield f"Additional properties are not allowed ({names} {verb} unexpected)"


def _extra_names(value: Mapping[str, Any], schema: Any) -> list[str]:
    """Return the names that match neither ``properties`` nor ``patternProperties`` of the schema."""
    patterns = [_pattern(one) for one in schema.get("patternProperties", ())]
    known = schema.get("properties", {})
    return [name for name in value if name not in known and not any(one.search(name) for one in patterns)]


_CHECKS: dict[str, Callable[[Any, Any, Any], Iterator[str]]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "minimum": _bound_check(lambda value, rule: bool(value < rule), "less than the minimum of"),
    "maximum": _bound_check(lambda value, rule: bool(value > rule), "greater than the maximum of"),
    "exclusiveMinimum": _bound_check(
        lambda value, rule: bool(value <= rule), "less than or equal to the minimum of"
    ),
    "exclusiveMaximum": _bound_check(
        lambda value, rule: bool(value >= rule), "greater than or equal to the maximum of"
    ),
    "minItems": _size_check(list, least=True),
    "maxItems": _size_check(list, least=False),
    "minLength": _size_check(str, least=True),
    "pattern": _matches,
    "required": _required,
    "dependentRequired": _dependent,
    "additionalProperties": _no_others,
}


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)
