"""Checks of settings from a user, by name and by a JSON Schema for the value. Each error is a single line."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from math import isfinite
from typing import Any

from bertdata.errors import SettingsError
from bertdata.io.foreign_text import MOST_DIGITS
from bertdata.io.json_text import parse_json_text, read_json
from schemas.faults import Fault, faults

_SHOWN = 100
_MOST_WORDS = 1_000
_TYPES = {
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "string": "a text",
    "object": "an object",
    "array": "a list",
}
_BOUNDS = {
    "minimum": "{} or more",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "const": "{!r}",
}
_SWITCH = {
    **dict.fromkeys(("true", "yes", "1", "on"), True),
    **dict.fromkeys(("false", "no", "0", "off"), False),
}


def check_names(given: Iterable[str], known: Collection[str], where: str = "") -> None:
    """Raise SettingsError for the first unknown name, and suggest the most similar known name.

    where: text in front of the name in the message, such as a path.
    """
    for name in given:
        if name not in known:
            raise SettingsError(f"{where}{name} is not a known key{suggest_known(name, sorted(known))}")


def suggest_known(given: str, known: Sequence[str], likeness: float = 0.6) -> str:
    """Return the end of an error message that suggests the known name that is most similar to ``given``.

    The dashes at the start of flags do not count. The text is empty if no name is similar enough.

    likeness: smallest similarity that is enough, from 0 to 1 (as difflib's ratio).
    """
    names = {name.removeprefix("--"): name for name in known}
    nearest = get_close_matches(given.removeprefix("--"), names, n=1, cutoff=likeness)
    return f"; the nearest known is {names[nearest[0]]}" if nearest else ""


def check_values(values: Mapping[str, Any], properties: Mapping[str, Any], where: str = "") -> None:
    """Raise SettingsError for the first value that does not fit its schema, in type or range.

    properties: JSON Schema of each setting, by name.
    where: text in front of the name in the message.
    """
    found = min(
        faults(values, {"properties": properties}), key=lambda fault: list(map(str, fault.path)), default=None
    )
    if found is not None:
        item = properties.get(str(found.path[0]), {}) if found.path else {}
        raise SettingsError(where + _format_fault(found, item))
    for name, value in values.items():
        if isinstance(value, float) and not isfinite(value):
            raise SettingsError(f"{where}{name} is {value}, expected a finite number")
        if isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
            raise SettingsError(f"{where}{name} has more than {MOST_DIGITS} digits, expected fewer")


def _format_fault(fault: Fault, item: Mapping[str, Any]) -> str:
    """Return the error message for a value that does not fit its schema.

    fault: what does not fit.
    item: the schema.
    """
    name, rule = ".".join(map(str, fault.path)), fault.rule
    if fault.keyword == "enum":
        choices = [value or "none" for value in rule]
        expected = "one of " + ", ".join(choices) + suggest_known(str(fault.value), choices, 0.7)
    elif (
        fault.keyword == "pattern" and "examples" in item
    ):  # the pattern accepts a known name and also package.module:NAME
        names = item["examples"]
        nearest = suggest_known(fault.value, names, 0.7)
        expected = f"one of {', '.join(names)} or package.module:NAME{nearest}"
    elif fault.keyword == "type":
        kinds = [rule] if isinstance(rule, str) else rule
        expected = " or ".join(_TYPES[kind] for kind in kinds if kind != "null")
    elif fault.keyword in _BOUNDS:
        expected = _BOUNDS[fault.keyword].format(rule)
    else:
        return f"{name}: {fault.message[:_MOST_WORDS]}"
    return f"{name} is {_shorten_value(fault.value)}, expected {expected}"


def _shorten_value(value: Any) -> str:
    """Return the value's repr, cut to a readable length."""
    words = repr(value)
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}..."


def list_types(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of the JSON types that a schema allows."""
    kinds = schema.get("type", ["string", "null"] if None in schema.get("enum", ()) else "string")
    return [kinds] if isinstance(kinds, str) else kinds


def read_value(text: str, kinds: list[str], name: str) -> Any:
    """Convert a text from the command line to the first of several JSON types that accepts the text.

    "none" and "null" are converted to None if "null" is among the types.

    kinds: names of the JSON types.
    name: name of the setting, for the error message.

    Raises SettingsError if no type accepts the text.
    """
    if "null" in kinds and text.lower() in ("none", "null"):
        return None
    for kind in kinds:
        try:
            return _READERS[kind](text)
        except (ValueError, KeyError):
            continue
    wanted = " or ".join(kind for kind in kinds if kind != "null")
    raise SettingsError(f"{name} is {_shorten_value(text)}, expected the type {wanted}")


def _parse_number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _parse_integer(text: str) -> int:
    number = _parse_number(text)
    if isinstance(number, float) and not number.is_integer():
        raise ValueError(text)
    return int(number)


_READERS: dict[str, Callable[[str], Any]] = {
    "boolean": lambda text: _SWITCH[text.lower()],
    "integer": _parse_integer,
    "number": _parse_number,
    "string": str,
    "object": parse_json_text,
    "array": parse_json_text,
}


def read_object(path: str) -> dict[str, Any]:
    """Return the JSON object that a file contains.

    Raises SettingsError, which names the file, if it contains anything else.
    """
    try:
        value = read_json(path)
    except ValueError as error:
        raise SettingsError(f"{path}: is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise SettingsError(f"{path}: is not a JSON object")
    return value
