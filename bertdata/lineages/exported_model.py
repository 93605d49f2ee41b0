"""The file lineage.json of an exported model, which says what the model was made from.

It contains the settings of the export, the md5s of the model's files, and all records that lead back to the
dump: the state of the checkpoint and the manifests of its data, as texts by their md5. Loaders of other
libraries ignore the file. ``schemas/lineage.json`` defines its format.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bertdata.errors import ManifestError
from bertdata.io import storage
from bertdata.io.file_check import check_safe_names, compute_file_md5, compute_md5
from bertdata.io.manifest_file import check_schema, dump_json, parse_json
from bertdata.lineages.documents import RecordDocuments
from bertdata.lineages.step import EXPORT, Input, LineageFile, Step
from bertdata.lineages.weights_record import make_weights_input

LINEAGE_NAME = "lineage.json"
EXPORT_FORMAT = "bertdata lineage 1"


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
) -> bytes:
    """Return the contents of the file lineage.json.

    directory: directory of the exported model, whose files are written already.
    names: names of the model's files.
    settings: settings of the export.
    versions: versions of the packages that wrote the model, by name.
    source: md5 of the record of the checkpoint that was exported. None if there is no record.
    documents: the records that lead from the checkpoint back to the dump.
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
            "files": files,
            "documents": documents.as_texts(),
        }
    )


def make_export_step(
    data: bytes,
    where: str,
    documents: RecordDocuments,
    follow: Callable[[bytes, str], Step],
    directory: str = "",
) -> Step:
    """Return the step that exported a model, with all steps before it.

    data: contents of the file lineage.json.
    where: path of the file, for error messages.
    documents: the records that are at hand. Those in the file are added.
    follow: function that returns the step of a record.
    directory: the model's directory, whose files are compared with the record. Empty if only a copy of the
        record is at hand.

    Raises ManifestError if the file does not match its schema.
    """
    value = parse_json(data, where)
    check_schema(value, where, "lineage")
    check_safe_names((entry["name"] for entry in value["files"]), where)
    faults = [
        f"{where}: the record with the md5 {md5} is damaged: found md5 {found}"
        for md5, text in value["documents"].items()
        if (found := compute_md5(text.encode())) != md5
    ]
    documents.add_texts(value["documents"], where)
    files = tuple(LineageFile(**entry) for entry in value["files"])
    if directory:
        faults += find_changed_files(directory, data, where)
    return Step(
        name=EXPORT,
        path=directory,
        record=compute_md5(data),
        settings=value["settings"],
        versions=value["versions"],
        inputs=(_make_source_input(value["source"], documents, follow),),
        outputs=files,
        faults=tuple(faults),
    )


def _make_source_input(
    source: str | None, documents: RecordDocuments, follow: Callable[[bytes, str], Step]
) -> Input:
    """Return the checkpoint that was exported, with the step that wrote it if its record is at hand.

    source: md5 of the checkpoint's record.
    """
    role = "checkpoint"
    if source is None:
        return Input(role=role, remark="the checkpoint had no record of how it was made")
    data = documents.find(source)
    if data is None:
        remark, _ = documents.explain_absence(source, "the record of the checkpoint")
        return Input(role=role, record=source, remark=remark, is_fault=True)
    try:
        if (found := make_weights_input(data, source)) is not None:
            return Input(role=role, files=found.files, record=source, source=True, remark=found.remark)
        step = follow(data, documents.paths[source])
    except ManifestError as error:
        return Input(role=role, record=source, remark=str(error), is_fault=True)
    return Input(role=role, files=step.outputs, record=source, made_by=step)


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
