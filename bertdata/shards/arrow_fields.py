"""The columns of datasets that Hugging Face's ``datasets`` saves on disk, and their description.

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
"""Key in the metadata of an Arrow schema. There ``datasets`` stores the columns' types as JSON."""

OBJECTIVE = "bertdata.objective"
"""Key in the metadata of an Arrow schema. There bertdata stores the objective's name."""

_TYPES = {"ones": "bool", "after": "int8"}


def list_arrow_fields(objective: Objective, *, has_masks: bool) -> dict[str, Field]:
    """Return the Arrow columns in which examples of this objective are stored, by column name.

    The shape of a column is ``*`` for a list per example, or ``1`` for a single value. Raises SettingsError
    if some part of an example has no column.
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
    """Return True if a batch column belongs to the masks.

    It then has one item per masked position, or it holds the end offsets of such a column.
    """
    kind = objective.batch_type
    if not has_group(kind, MASKS):
        return False
    return find_mask_columns(kind).ends.name in (column.ends, column.name)


def _make_list_field(field: Field) -> Field:
    """Return the field as a list of any length without padding, with a small integer type."""
    if field.shape == "1":
        return field
    return replace(field, shape="*", type=_TYPES.get(field.source, "int32"))


def describe_features(fields: Fields) -> dict[str, Any]:
    """Return the columns' types in the JSON form that ``datasets`` calls features, from its version 4 on."""
    found: dict[str, Any] = {}
    for name, field in fields.items():
        value = {"dtype": field.type, "_type": "Value"}
        found[name] = value if field.shape == "1" else {"feature": value, "_type": "List"}
    return found


def dump_features(fields: Fields) -> str:
    """Return the columns' types as the JSON text that is stored under the metadata key FEATURES."""
    return json.dumps({"info": {"features": describe_features(fields)}})


def dump_dataset_info(fields: Fields) -> bytes:
    """Return the contents of ``dataset_info.json``, from which ``datasets`` reads the columns' types."""
    info = {
        "citation": "",
        "description": "",
        "features": describe_features(fields),
        "homepage": "",
        "license": "",
    }
    return json.dumps(info, indent=2).encode()


def dump_dataset_state(contents: Mapping[str, str]) -> bytes:
    """Return the contents of ``state.json``, from which ``datasets`` reads the names of the data files and a
    fingerprint.

    The fingerprint has 16 hexadecimal digits and depends only on the content md5s.

    contents: content md5 of each data file by its name, in the order of the files.
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
