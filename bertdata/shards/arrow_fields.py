"""Columns and features of datasets that Hugging Face's ``datasets`` saves on disk.

The columns are a model's inputs and labels without padding, under Hugging Face's names (``input_ids`` and so
on). Examples without masks have no columns for mask labels.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bertdata.errors import SettingsError
from bertdata.examples.fields import Field, Fields, find_places_column, map_columns_by_name
from bertdata.examples.groups import MASKS, find_mask_columns, has_group
from bertdata.examples.objective import Objective

FEATURES = "huggingface"
"""Metadata key in a file's Arrow schema under which ``datasets`` stores the column types as JSON."""

OBJECTIVE = "bertdata.objective"
"""Metadata key in a file's Arrow schema under which bertdata stores the objective's name."""

_TYPES = {"ones": "bool", "after": "int8"}


def list_arrow_fields(objective: Objective, *, has_masks: bool) -> dict[str, Field]:
    """Return the Arrow columns for examples of this objective, by column name.

    The shape of each column is ``*`` (a list per row) or ``1`` (a single value per row). SettingsError if
    some part of an example cannot be stored in any column.
    """
    kind = objective.batch_type
    columns = map_columns_by_name(kind)
    unused = {
        name for name, column in columns.items() if not has_masks and _has_item_per_mask(objective, column)
    }
    found = {name: _make_list_field(field) for name, field in objective.model_fields.items()}
    held = {field.of for field in found.values() if field.source in ("values", "after", "placed")}
    held |= {str(find_places_column(field.of, kind)) for field in found.values() if field.source == "placed"}
    held |= set(kind.ragged())
    for field in objective.fields("parquet").values():
        if field.of not in held and field.source == "values":
            found[field.name] = field
            held.add(field.of)
    if missing := [name for name in columns if name not in held]:
        raise SettingsError(
            f"arrow holds no column for {', '.join(missing)} of the objective {objective.name}; convert "
            "to a container of ours: tfrecord, hdf5 or parquet"
        )
    return {name: field for name, field in found.items() if field.of not in unused}


def _has_item_per_mask(objective: Objective, column: Any) -> bool:
    """Return True if the batch column has one item per masked position, or if it holds the end offsets of
    such a column.
    """
    kind = objective.batch_type
    if not has_group(kind, MASKS):
        return False
    return find_mask_columns(kind).ends.name in (column.ends, column.name)


def _make_list_field(field: Field) -> Field:
    """Return the field as a list of any length with a narrow item type, instead of a padded row."""
    if field.shape == "1":
        return field
    return replace(field, shape="*", type=_TYPES.get(field.source, "int32"))


def describe_features(fields: Fields) -> dict[str, Any]:
    """Return the columns' types (``features``) in the JSON form of ``datasets`` 4 and newer."""
    found: dict[str, Any] = {}
    for name, field in fields.items():
        value = {"dtype": field.type, "_type": "Value"}
        found[name] = value if field.shape == "1" else {"feature": value, "_type": "List"}
    return found


def dump_features(fields: Fields) -> str:
    """Return the columns' types as JSON, to be stored under the schema's metadata key FEATURES."""
    return json.dumps({"info": {"features": describe_features(fields)}})


def dump_dataset_info(fields: Fields) -> bytes:
    """Return the contents of ``dataset_info.json``, which tells ``datasets`` the columns' types."""
    info = {
        "citation": "",
        "description": "",
        "features": describe_features(fields),
        "homepage": "",
        "license": "",
    }
    return json.dumps(info, indent=2).encode()


def dump_dataset_state(contents: Mapping[str, str]) -> bytes:
    """Return the contents of ``state.json``, which tells ``datasets`` the data files and a fingerprint.

    contents: content md5 by name of the data file, in order. The fingerprint (16 hexadecimal digits) is
    computed from these md5s only.
    """
    digest = hashlib.blake2b("".join(contents.values()).encode(), digest_size=8).hexdigest()
    state: dict[str, Any] = {
        "_data_files": [{"filename": name} for name in contents],
        "_fingerprint": digest,
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    return json.dumps(state, indent=2).encode()
