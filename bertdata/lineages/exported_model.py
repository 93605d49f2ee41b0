"""The file lineage.json of an exported model, which says what the model was made from.

It contains the settings of the export, the md5s of the model's files, the md5s of the files that flags of the
export named (``--vocab``, ``--model-config``), and all records that lead back to the dump: the state of the
checkpoint and the manifests of its data, as texts by their md5. Loaders of other libraries ignore the file.
``schemas/lineage.json`` defines its format.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bertdata.errors import ManifestError
from bertdata.io import storage
from bertdata.io.file_check import check_safe_names, compute_file_md5
from bertdata.io.manifest_file import check_schema, dump_json, parse_json
from bertdata.lineages.documents import RecordDocuments
from bertdata.lineages.flag_files import make_input_json
from bertdata.lineages.step import Input

LINEAGE_NAME = "lineage.json"
EXPORT_FORMAT = "bertdata lineage 1"

TRAINING_DATA = "training data"
"""Role of the dataset that ``--train-data`` named, from whose manifest the tokeniser was read."""


def is_export_record(value: Mapping[str, Any]) -> bool:
    """Return True if the JSON object is the file lineage.json of an exported model."""
    return value.get("format") == EXPORT_FORMAT


def read_export_record(directory: str) -> bytes | None:
    """Return the contents of a directory's file lineage.json.

    Return None if there is no such file, or if another program wrote it.
    """
    path = storage.join(directory, LINEAGE_NAME)
    data = storage.read_if_present(path)
    if data is None:
        return None
    try:
        return data if is_export_record(parse_json(data, path)) else None
    except ManifestError:
        return None


def make_export_record(
    directory: str,
    names: Sequence[str],
    *,
    settings: Mapping[str, Any],
    versions: Mapping[str, str],
    source: str | None,
    documents: RecordDocuments,
    inputs: Sequence[Input] = (),
) -> bytes:
    """Return the contents of the file lineage.json.

    directory: directory of the exported model, whose files are written already.
    names: names of the model's files.
    settings: settings of the export.
    versions: versions of the packages that wrote the model, by name.
    source: md5 of the record of the checkpoint that was exported. None if there is no record.
    documents: the records that lead from the checkpoint back to the dump.
    inputs: what flags of the export named: files, or a dataset by the md5 of its manifest.
    """
    files = [
        {
            "name": name,
            "bytes": storage.read_size(path := storage.join(directory, name)),
            "md5": compute_file_md5(path),
        }
        for name in sorted(names)
    ]
    return dump_json(
        {
            "format": EXPORT_FORMAT,
            "settings": dict(settings),
            "versions": dict(versions),
            "source": source,
            **({"inputs": [make_input_json(one) for one in inputs]} if inputs else {}),
            "files": files,
            "documents": documents.as_texts(),
        }
    )


def find_changed_files(directory: str, data: bytes, where: str) -> list[str]:
    """Return a fault for each file of an exported model that is missing or was changed after the export.

    directory: the model's directory.
    data: contents of its file lineage.json.
    where: path of the file, for error messages.

    Raises ManifestError if the file does not match its schema.
    """
    value = parse_json(data, where)
    check_schema(value, where, "lineage")
    check_safe_names((entry["name"] for entry in value["files"]), where)
    faults = []
    for entry in value["files"]:
        path, expected = storage.join(directory, entry["name"]), entry["md5"]
        if not storage.exists(path):
            faults.append(f"{path}: is missing, expected md5 {expected}")
        elif (found := compute_file_md5(path)) != expected:
            faults.append(f"{path}: was changed after the export: found md5 {found}, expected {expected}")
    return faults


def is_unchanged(directory: str, data: bytes, where: str) -> bool:
    """Return True if the file lineage.json is whole, and every file of the model is as it says.

    The arguments are those of ``find_changed_files``.
    """
    try:
        return not find_changed_files(directory, data, where)
    except ManifestError:
        return False
