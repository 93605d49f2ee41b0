"""The file state.json of a checkpoint, read without the trainer and without torch."""

import json
from collections.abc import Mapping
from hashlib import md5
from typing import Any

from bertdata.errors import ManifestError
from bertdata.io.manifest_file import parse_json
from schemas import load_schema
from schemas.faults import first_fault

STATE_FORMAT = "bertdata checkpoint 1"
STATE_NAME = "state.json"
CHECKPOINTS = "checkpoints"
"""Folder of a run that has its checkpoints."""

START, TRAIN_DATA, EVAL_DATA = "start", "train_data", "eval_data"
"""Keys of ``sources`` in a state: the record of the checkpoint that the phase started from, and the manifests
of its datasets.
"""

NEW, FROM_WEIGHTS, FROM_PHASE_1 = "new", "weights", "phase 2"
"""Values of ``started`` in a state: the phase began with random weights, with the weights of a checkpoint, or
with the weights and moments of phase 1 in the same directory.
"""


def compute_state_md5(values: Mapping[str, Any]) -> str:
    """Return the md5 of a state's values. state.json contains both the values and this md5."""
    return md5(json.dumps(values, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def is_run_state(value: Mapping[str, Any]) -> bool:
    """Return True if the JSON object is the state of a checkpoint."""
    return value.get("format") == STATE_FORMAT


def parse_run_state(data: bytes, where: str) -> dict[str, Any]:
    """Return the values of a checkpoint's state, without its format and md5.

    where: path of the file, for error messages.

    Raises ManifestError if the state is damaged, or is not a state of this trainer.
    """
    values = parse_json(data, where)
    digest, found_format = values.pop("md5", None), values.get("format")
    if found_format != STATE_FORMAT or compute_state_md5(values) != digest:
        raise ManifestError(
            f"{where}: is damaged or not this trainer's: found format {found_format!r}, md5 {digest}, "
            f"expected {STATE_FORMAT!r}, {compute_state_md5(values)}"
        )
    del values["format"]
    if "config" not in values or "files" not in values:
        raise ManifestError(f"{where}: lacks config or files")
    # Fields of other versions are accepted, and fields of this version may be absent.
    schema = load_schema("checkpoint")
    known = {name: value for name, value in values.items() if name in schema["properties"]}
    fault = first_fault(known, {**schema, "required": []})
    if fault is not None:
        raise ManifestError(f"{where}: {'/'.join(map(str, fault.path))}: {fault.message[:1_000]}")
    return values
