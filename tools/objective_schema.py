"""Makes the part of ``schemas/manifest.json`` that describes an objective's record in a manifest.

An objective says which examples are made from the token ids. Its record is made from the settings that it
declares. The schema contains the package's own objectives by name. For any other objective it only requires
what all objectives have.
"""

import json
from collections.abc import Mapping
from typing import Any

from bertdata.config.declared import OBJECTIVE_RECORD, derive_schemas
from bertdata.config.settings import LONGEST_SEQUENCE, ExampleSettings
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import OBJECTIVES
from bertdata.records import DEFAULT_OBJECTIVE, IDS

_LINE = 100  # longest value that is written on one line, in characters
_UNVERIFIED = {"required": ["unverified"]}

Schema = dict[str, Any]


def make_manifest_schema(written: str) -> str:
    """Return ``schemas/manifest.json`` with a new last definition, which is that of an objective's record.

    written: the present text of the file.
    """
    head, name, _ = written.partition(f'\n    "{OBJECTIVE_RECORD}": {{\n      "description"')
    assert name, "schemas/manifest.json has no definition of an objective's record"
    return f'{head}\n    "{OBJECTIVE_RECORD}": {_format_schema(_make_record_schema(), "    ")}\n  }}\n}}\n'


def _make_record_schema() -> Schema:
    """Return the schema of an objective's record.

    It has the settings that all objectives have, and for each known name the settings of that objective.
    """
    common = _list_declared_schemas(ExampleSettings)
    common[IDS.size] |= {"minimum": 5, "maximum": LONGEST_SEQUENCE}
    unverified = "made from another tool's files, whose other settings are not known"
    return {
        "description": "the objective: which examples are made from the token ids. Has the settings of all "
        "objectives and the objective's own. A setting that is not required is absent if it has its default "
        "(made by python -m tools.program_pages from the settings that the package's objectives declare)",
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
            _make_objective_schema(one, common)
            for one in OBJECTIVES.values()
            if _list_additional_schemas(one, common) and not one.unlearned
        ],
    }


def _make_objective_schema(objective: Objective, common: Mapping[str, Any]) -> Schema:
    """Return the schema of the settings that only this objective has.

    A setting that manifests omit at its default is not required. A dataset that was made from another tool's
    files has only the settings for sizes.

    common: schemas of the settings that all objectives have.
    """
    own = _list_additional_schemas(objective, common)
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


def _list_additional_schemas(objective: Objective, common: Mapping[str, Any]) -> dict[str, Schema]:
    """Return the schemas of those settings of an objective that not all objectives have.

    common: schemas of the settings that all objectives have.
    """
    declared = _list_declared_schemas(objective.settings_type)
    return {name: schema for name, schema in declared.items() if name not in common}


def _list_declared_schemas(kind: type[ExampleSettings]) -> dict[str, Schema]:
    """Return the schemas of the settings that are written to an objective's record, except its name.

    kind: class of the objective's settings.
    """
    found = {}
    for name, schema in derive_schemas(kind).items():
        if kind.__dataclass_fields__[name].metadata["record"] == OBJECTIVE_RECORD and name != "objective":
            found[name] = {key: value for key, value in schema.items() if key != "default"}
    return found


def _format_schema(value: Any, indent: str) -> str:
    """Return the value as JSON. A value that is short or contains no JSON object is on one line."""
    line = json.dumps(value)
    items = value.values() if isinstance(value, dict) else value
    nested = isinstance(value, dict | list) and any(isinstance(item, dict) for item in items)
    if not nested or len(line) <= _LINE:
        return line
    inner = f"{indent}  "
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + _format_schema(item, inner) for item in value) + f"\n{indent}]"
    lines = [f"{inner}{json.dumps(key)}: {_format_schema(item, inner)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
