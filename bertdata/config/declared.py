"""Declare a setting once, as a dataclass field, and derive its JSON Schema from that declaration."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, field, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

_TYPES = {
    int: "integer",
    float: "number",
    bool: "boolean",
    str: "string",
    os.PathLike: "string",
    NoneType: "null",
    Sequence: "array",
    Mapping: "object",
}
_BOUNDS = {
    "least": "minimum",
    "most": "maximum",
    "above": "exclusiveMinimum",
    "below": "exclusiveMaximum",
}

MAX_INTEGER = (1 << 53) - 1
"""Largest integer allowed for a setting without a declared upper bound.

JSON readers that use 64-bit floats cannot represent every larger integer exactly.
"""

MAX_FLOAT = 1e38
"""Largest float allowed for a setting without a declared upper bound. It fits into 32 bits."""

OBJECTIVE_RECORD = "objective"
"""Name of the manifest's record that stores a setting, unless the setting names another record."""


def setting(
    default: Any,
    help: str,
    choices: Sequence[str] = (),
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    keywords: Mapping[str, Any] | None = None,
    optional: bool = False,
    record: str = OBJECTIVE_RECORD,
    **marks: Any,
) -> Any:
    """Return a dataclass field that also declares the setting's help text, choices and bounds.

    least, most, above, below: inclusive and exclusive bounds of a number, or of each number in a list or an
    object. A number with a lower bound and no upper bound is limited to MOST_WHOLE or MOST_NUMBER.
    keywords: further JSON Schema keywords.
    optional: None only means "not set". It is not accepted as a value.
    record: name of the manifest's record that holds the setting: tokenizer, objective or container.
    marks: extra entries of the setting's schema, which other code of bertdata reads.
    """
    facts = {
        "help": help,
        "choices": choices,
        "bounds": _make_bound_keywords({"least": least, "most": most, "above": above, "below": below}),
        "keywords": keywords or {},
        "optional": optional,
        "record": record,
        "marks": marks,
    }
    return field(default=default, metadata=facts)


def _make_bound_keywords(bounds: Mapping[str, float | None]) -> dict[str, float]:
    """Return the JSON Schema keywords for these bounds."""
    found = {keyword: bounds.get(name) for name, keyword in _BOUNDS.items()}
    return {keyword: bound for keyword, bound in found.items() if bound is not None}


def repeat_setting(kind: Any, name: str, *, help: str = "", default: Any = MISSING, **others: Any) -> Any:
    """Return a field that repeats the setting ``name`` of another settings class.

    help: text appended to the original help.
    default: replaces the original default.
    others: new bounds, which replace all original bounds, and further marks, as for ``setting``.
    """
    [item] = (item for item in fields(kind) if item.name == name)
    bounds = {word: others.pop(word) for word in _BOUNDS if word in others}
    marks = {**item.metadata["marks"], **others}
    facts = {**item.metadata, "help": item.metadata["help"] + help, "marks": marks}
    if bounds:
        facts["bounds"] = _make_bound_keywords(bounds)
    return field(default=item.default if default is MISSING else default, metadata=facts)


def derive_schemas(kind: Any) -> Mapping[str, dict[str, Any]]:
    """Return a JSON Schema for each field of a dataclass that ``setting`` declared, by field name."""
    return _derive_schemas(kind)


@cache
def _derive_schemas(kind: Any) -> dict[str, dict[str, Any]]:
    hints = get_type_hints(kind)
    return {
        item.name: _make_schema(item, hints[item.name]) for item in fields(kind) if "help" in item.metadata
    }


def _make_schema(item: Field[Any], hint: Any) -> dict[str, Any]:
    facts = item.metadata
    kinds = [kind for kind in _list_types(hint) if not (facts["optional"] and kind is NoneType)]
    if facts["choices"]:
        values = {"enum": [*([None] if NoneType in kinds else []), *facts["choices"]]}
    else:
        values = _make_value_schema(kinds, facts["bounds"])
    default = {} if item.default is None else {"default": item.default}
    return {**facts["marks"], "description": facts["help"], **default, **facts["keywords"], **values}


def _list_types(hint: Any) -> list[Any]:
    """List the types that a type hint allows. int is left out next to float, which covers it."""
    kinds = list(get_args(hint)) if isinstance(hint, UnionType) else [hint]
    return [kind for kind in kinds if not (kind is int and float in kinds)]


def _make_value_schema(kinds: Sequence[Any], bounds: Mapping[str, float]) -> dict[str, Any]:
    """Return the JSON Schema of a value that has any of these types."""
    names = list(dict.fromkeys(_TYPES[get_origin(kind) or kind] for kind in kinds))
    found: dict[str, Any] = {"type": names[0] if len(names) == 1 else names}
    if not {"integer", "number"}.isdisjoint(names):
        found |= bounds
        if bounds and {"maximum", "exclusiveMaximum"}.isdisjoint(bounds):
            found["maximum"] = MAX_FLOAT if "number" in names else MAX_INTEGER
    for kind in kinds:
        if get_origin(kind) is Sequence:
            found["items"] = _make_value_schema(_list_types(get_args(kind)[0]), bounds)
        elif get_origin(kind) is Mapping:
            found["additionalProperties"] = _make_value_schema(_list_types(get_args(kind)[1]), bounds)
    return found
