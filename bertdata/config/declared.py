"""Declaration of settings: each setting is declared once as a dataclass field, which also gives its JSON
Schema.
"""

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
"""Largest integer for a setting that declares no upper bound.

JSON readers that store numbers as 64-bit floats cannot represent all larger integers.
"""

MAX_FLOAT = 1e38
"""Largest float for a setting that declares no upper bound. It can be stored as a 32-bit float."""

OBJECTIVE_RECORD = "objective"
"""Name of the manifest's record (JSON object) that stores a setting if its declaration names no other record.
"""


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
    """Return a dataclass field that declares a setting with its help text, choices and bounds.

    choices: the accepted values. If it is empty, the type decides.
    least, most: smallest and largest accepted number. They also apply to each number in a list or an object.
    above, below: numbers that an accepted number must be above and below. They also apply to each number in a
        list or an object.
    keywords: further keywords of the setting's JSON Schema.
    optional: True if the setting need not have a value. Its default is then None, but None is no value that a
        user can choose.
    record: name of the manifest's record that stores the setting: tokenizer, objective or container.
    marks: further entries of the setting's schema, which other code of bertdata reads.

    A number with a lower bound and no upper bound is limited to MAX_INTEGER or MAX_FLOAT.
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
    """Return the JSON Schema keywords for the bounds that are not None."""
    found = {keyword: bounds.get(name) for name, keyword in _BOUNDS.items()}
    return {keyword: bound for keyword, bound in found.items() if bound is not None}


def repeat_setting(kind: Any, name: str, *, help: str = "", default: Any = MISSING, **others: Any) -> Any:
    """Return a field that declares a setting of another settings class once more, with changes.

    kind: the other settings class.
    name: name of the setting.
    help: text that is added to the help of the original setting.
    default: new default. Without it, the original default is used.
    others: new bounds, which replace all original bounds, and further marks as in ``setting``.
    """
    [item] = (item for item in fields(kind) if item.name == name)
    bounds = {word: others.pop(word) for word in _BOUNDS if word in others}
    marks = {**item.metadata["marks"], **others}
    facts = {**item.metadata, "help": item.metadata["help"] + help, "marks": marks}
    if bounds:
        facts["bounds"] = _make_bound_keywords(bounds)
    return field(default=item.default if default is MISSING else default, metadata=facts)


def derive_schemas(kind: Any) -> Mapping[str, dict[str, Any]]:
    """Return the JSON Schema of each setting of a dataclass, by field name."""
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
    """Return the types that a type hint allows. int is left out if float is allowed, because float includes
    it.
    """
    kinds = list(get_args(hint)) if isinstance(hint, UnionType) else [hint]
    return [kind for kind in kinds if not (kind is int and float in kinds)]


def _make_value_schema(kinds: Sequence[Any], bounds: Mapping[str, float]) -> dict[str, Any]:
    """Return the JSON Schema of a value that may have any of these types.

    bounds: JSON Schema keywords for the bounds of numbers.
    """
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
