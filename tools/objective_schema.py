"""The part of ``schemas/manifest.json`` on objectives, made of the settings that they declare.

Only the package's own objectives are known by name: of any other the record has the form that all have.
"""

import json
from collections.abc import Mapping
from typing import Any

from bertdata.config.declared import OBJECTIVE_RECORD, schema_of
from bertdata.config.settings import LONGEST_SEQUENCE, ExampleSettings
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import OBJECTIVES
from bertdata.records import DEFAULT_OBJECTIVE, IDS

_LINE = 100  # characters of a value that stands on one line
_UNVERIFIED = {"required": ["unverified"]}

Schema = dict[str, Any]


def manifest_schema(written: str) -> str:
    """The text of ``schemas/manifest.json`` with its last definition, of an objective's record, renewed."""
    head, name, _ = written.partition(f'\n    "{OBJECTIVE_RECORD}": {{\n      "description"')
    assert name, "schemas/manifest.json has no definition of an objective's record"
    return f'{head}\n    "{OBJECTIVE_RECORD}": {_laid_out(_record(), "    ")}\n  }}\n}}\n'


def _record() -> Schema:
    """The schema of any objective's record, and of the settings of those that are known by name."""
    common = _declared(ExampleSettings)
    common[IDS.size] |= {"minimum": 5, "maximum": LONGEST_SEQUENCE}
    unverified = "made from another tool's files, whose other settings nobody knows"
    return {
        "description": "which examples are made of the ids: what every objective has, and its own settings; "
        "one that is not required is absent where it has its default (made by python -m tools.program_pages "
        "from the settings that the package's objectives declare)",
        "type": "object",
        "required": [IDS.size],
        "if": _UNVERIFIED,
        "else": {"required": [name for name in common if name != IDS.size]},
        "properties": {
            "name": {"type": "string", "minLength": 1},
            **common,
            "unverified": {"description": unverified, "const": True},
        },
        "allOf": [
            _of_objective(one, common)
            for one in OBJECTIVES.values()
            if _own(one, common) and not one.unlearned
        ],
    }


def _of_objective(objective: Objective, common: Mapping[str, Any]) -> Schema:
    """The settings that the objective's record has besides the common ones.

    A setting that is left out where it has its default is not required. Of another tool's files there are
    sizes alone.
    """
    own = _own(objective, common)
    sizes = [name for name in objective.batch_type.sizes() if name in own]
    for name in sizes:
        own[name]["minimum"] = 1
    written = objective.settings_type().as_json()
    name = {"enum": [objective.name, objective.of_words]} if objective.of_words else {"const": objective.name}
    named: Schema = {"properties": {"name": name}}
    if objective.name != DEFAULT_OBJECTIVE:
        named["required"] = ["name"]
    return {
        "if": named,
        "then": {
            "if": _UNVERIFIED,
            "then": {"required": sizes},
            "else": {"required": [name for name in own if name in written]},
            "properties": own,
        },
    }


def _own(objective: Objective, common: Mapping[str, Any]) -> dict[str, Schema]:
    declared = _declared(objective.settings_type)
    return {name: schema for name, schema in declared.items() if name not in common}


def _declared(kind: type[ExampleSettings]) -> dict[str, Schema]:
    """The settings of that kind which stand in the record of the objective, but for its name."""
    found = {}
    for name, schema in schema_of(kind).items():
        if kind.__dataclass_fields__[name].metadata["record"] == OBJECTIVE_RECORD and name != "objective":
            found[name] = {key: value for key, value in schema.items() if key != "default"}
    return found


def _laid_out(value: Any, indent: str) -> str:
    """The value as JSON: a line for what is short or has no objects in it."""
    line = json.dumps(value)
    items = value.values() if isinstance(value, dict) else value
    nested = isinstance(value, dict | list) and any(isinstance(item, dict) for item in items)
    if not nested or len(line) <= _LINE:
        return line
    inner = f"{indent}  "
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + _laid_out(item, inner) for item in value) + f"\n{indent}]"
    lines = [f"{inner}{json.dumps(key)}: {_laid_out(item, inner)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
