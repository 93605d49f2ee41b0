"""Columns of an example in a dataset that Hugging Face's ``datasets`` keeps on disk, and their features.

A model's inputs and labels without padding, under Hugging Face's names (``input_ids``, ...).
Examples without masks have no labels of masks.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bertdata.errors import SettingsError
from bertdata.examples.fields import Field, Fields, columns_by_name, places_of
from bertdata.examples.groups import MASKS, has_group, mask_columns
from bertdata.examples.objective import Objective

FEATURES = "huggingface"
"""The key of the features in the metadata of a file's schema."""

OBJECTIVE = "bertdata.objective"
"""The key of the objective's name there."""

_TYPES = {"ones": "bool", "after": "int8"}


def arrow_fields(objective: Objective, *, has_masks: bool) -> dict[str, Field]:
    """The columns of the objective's examples, by name, without a size: shape is ``*`` or ``1``.

    SettingsError where the columns do not hold all that an example does.
    """
    kind = objective.batch_type
    columns = columns_by_name(kind)
    unused = {name for name, column in columns.items() if not has_masks and _of_masks(objective, column)}
    found = {name: _unpadded(field) for name, field in objective.model_fields.items()}
    held = {field.of for field in found.values() if field.source in ("values", "after", "placed")}
    held |= {str(places_of(field.of, kind)) for field in found.values() if field.source == "placed"}
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


def _of_masks(objective: Objective, column: Any) -> bool:
    """True for a column with an item for each mask."""
    kind = objective.batch_type
    if not has_group(kind, MASKS):
        return False
    return mask_columns(kind).ends.name in (column.ends, column.name)


def _unpadded(field: Field) -> Field:
    """The model's field as a list of any length, in a narrow type."""
    if field.shape == "1":
        return field
    return replace(field, shape="*", type=_TYPES.get(field.source, "int32"))


def datasets_features(fields: Fields) -> dict[str, Any]:
    """The features of the columns, as ``datasets`` 4 and newer describe them in JSON."""
    found: dict[str, Any] = {}
    for name, field in fields.items():
        value = {"dtype": field.type, "_type": "Value"}
        found[name] = value if field.shape == "1" else {"feature": value, "_type": "List"}
    return found


def features_metadata(fields: Fields) -> str:
    """The value of FEATURES in the metadata of a file's schema."""
    return json.dumps({"info": {"features": datasets_features(fields)}})


def dataset_info(fields: Fields) -> bytes:
    """The bytes of ``dataset_info.json``."""
    info = {
        "citation": "",
        "description": "",
        "features": datasets_features(fields),
        "homepage": "",
        "license": "",
    }
    return json.dumps(info, indent=2).encode()


def dataset_state(contents: Mapping[str, str]) -> bytes:
    """The bytes of ``state.json``. contents: the content md5 of each data file, in order.

    Its fingerprint, 16 hexadecimal digits, is a digest of the content alone.
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
