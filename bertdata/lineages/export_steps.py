"""Steps that exported a model: the file lineage.json becomes a step, with the checkpoint as its first input.

The other inputs are what flags of the export named. Records of earlier versions do not list them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from bertdata.errors import ManifestError
from bertdata.io.file_check import check_safe_names, compute_md5
from bertdata.io.manifest_file import check_schema, parse_json
from bertdata.lineages.documents import RecordDocuments
from bertdata.lineages.exported_model import find_changed_files
from bertdata.lineages.recorded_inputs import check_flag_inputs, make_file_input
from bertdata.lineages.step import CONVERT, CREATE, EXPORT, FEATURES, PACK, Input, LineageFile, Step
from bertdata.lineages.weights_record import make_weights_input

_DATASET_STEPS = (CREATE, PACK, CONVERT, FEATURES)


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
    check_flag_inputs(value.get("inputs", ()), where)
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
        inputs=(
            _make_source_input(value["source"], documents, follow),
            # Earlier versions did not record the flags.
            *(_make_flag_input(entry, documents, follow) for entry in value.get("inputs", ())),
        ),
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
    try:
        found = None if data is None else make_weights_input(data, source)
    except ManifestError as error:
        return Input(role=role, record=source, remark=str(error), is_fault=True)
    if found is not None:
        return Input(role=role, files=found.files, record=source, source=True, remark=found.remark)
    return _follow_record(role, source, "the record of the checkpoint", documents, follow)


def _make_flag_input(
    entry: Mapping[str, Any], documents: RecordDocuments, follow: Callable[[bytes, str], Step]
) -> Input:
    """Return the files or the dataset that a flag of the export named.

    entry: what the file lineage.json says about it.
    """
    role, record = entry["role"], entry.get("record")
    if record is None:
        return make_file_input(entry, documents, follow)
    found = _follow_record(role, record, "the dataset's manifest", documents, follow)
    if found.made_by is None or found.made_by.name in _DATASET_STEPS:
        return found
    told = f"the record with the md5 {record} is not the manifest of a dataset"
    return Input(role=role, record=record, remark=told, is_fault=True)


def _follow_record(
    role: str, record: str, what: str, documents: RecordDocuments, follow: Callable[[bytes, str], Step]
) -> Input:
    """Return an input whose record is cited, with the step that wrote it. It is a fault if there is none.

    what: name of the record, for messages.
    """
    data = documents.find(record)
    if data is None:
        remark, _ = documents.explain_absence(record, what)
        return Input(role=role, record=record, remark=remark, is_fault=True)
    try:
        step = follow(data, documents.paths[record])
    except ManifestError as error:
        return Input(role=role, record=record, remark=str(error), is_fault=True)
    return Input(role=role, files=step.outputs, record=record, made_by=step)
