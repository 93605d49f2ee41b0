"""Flags made from the fields of a request class, and requests made from parsed flags.

A request is a dataclass that holds all arguments of a step, such as ``create``.
"""

import argparse
from dataclasses import Field, fields
from typing import Any, TypeVar, get_args, get_type_hints

from bertdata.cli.common.parser import parse_integer, parse_positive
from bertdata.steps.keywords import OWN_SETTINGS

Request = TypeVar("Request")


def add_flags(parser: argparse._ActionsContainer, kind: type[Any], *names: str, **changed: Any) -> None:
    """Add a flag for each of the named fields of a request class.

    If the user does not give a flag, its value is None. It is False for a switch, and an empty list for a
    flag that may be repeated.

    kind: the request class.
    names: names of the fields.
    changed: for each field name, keyword arguments of ``add_argument`` that replace those that the field
        declares.
    """
    items, hints = {item.name: item for item in fields(kind)}, get_type_hints(kind)
    for name in names:
        _add_flag(parser, items[name], hints[name], changed)


def _add_flag(
    parser: argparse._ActionsContainer, item: Field[Any], hint: Any, changed: dict[str, Any]
) -> None:
    """Add the flag of a field.

    hint: type hint of the field, which decides how the text of the flag's value is converted.
    changed: keyword arguments of ``add_argument`` that replace those that the field declares.
    """
    marks = item.metadata["marks"]
    flag = marks.get("flag", f"--{item.name.replace('_', '-')}")
    facts: dict[str, Any] = {"dest": item.name, "help": item.metadata["help"]}
    types = get_args(hint) or (hint,)
    if bool in types:
        facts["action"] = "store_true"
    else:
        facts |= {"metavar": marks.get("metavar"), "choices": item.metadata["choices"] or None}
    if int in types:
        facts["type"] = parse_positive if item.metadata["bounds"].get("minimum") == 1 else parse_integer
    if marks.get("repeated"):
        facts |= {"action": "append", "default": []}
        del facts["choices"]
    parser.add_argument(flag, **(facts | changed))


def make_request(kind: type[Request], flags: argparse.Namespace, **others: Any) -> Request:
    """Return the request that the parsed flags describe. A field gets the value of the flag of the same name.

    Flags for which there is no field are settings of a user's own objective. They go to the field
    ``own_settings``.

    others: values of fields that have no flag.
    """
    values = vars(flags)
    known = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    found = {name: value for name, value in values.items() if name in known}
    if OWN_SETTINGS in known:
        others[OWN_SETTINGS] = {
            name: value
            for name in values["settings_names"]
            if name not in known and (value := values[name]) is not None
        }
    return kind(**{**found, **others})
