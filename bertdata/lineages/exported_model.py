"""The file lineage.json of an exported model, which says what the model was made from.

It contains the settings of the export, the md5s of the model's files, the md5s of the files that flags of the
export named (``--vocab``, ``--model-config``), and all records that lead back to the dump: the state of the
checkpoint and the manifests of its data, as texts by their md5. Loaders of other libraries ignore the file.
``schemas/lineage.json`` defines its format.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bertdata.errors import ManifestError
from bertdata.io import storage
from bertdata.io.assets import is_published_vocabulary
from bertdata.io.file_check import check_safe_names, compute_file_md5, compute_md5
from bertdata.io.manifest_file import check_schema, dump_json, parse_json
from bertdata.lineages.data_steps import OWN_VOCABULARY, find_vocabulary_manifest
from bertdata.lineages.documents import RecordDocuments
from bertdata.lineages.step import CONVERT, CREATE, EXPORT, FEATURES, PACK, Input, LineageFile, Step
from bertdata.lineages.weights_record import make_weights_input

LINEAGE_NAME = "lineage.json"
EXPORT_FORMAT = "bertdata lineage 1"

VOCABULARY = "vocabulary"
"""Role of the file that ``--vocab`` named: a vocabulary, or a tokenizer.json with another name. A published
vocabulary has its name, such as ``bert-base-uncased``, as the name of the file.
"""
TOKENIZER_JSON = "tokenizer.json"
"""Role of the file ``tokenizer.json`` that ``--vocab`` named, and of the files next to it that were read."""
TOKENIZER_DIRECTORY = "tokeniser"
"""Role of the files of a tokeniser in the directory that ``--vocab`` named."""
MODEL_CONFIGURATION = "model configuration"
"""Role of the file that ``--model-config`` named."""
TRAINING_DATA = "training data"
"""Role of the dataset that ``--train-data`` named, from whose manifest the tokeniser was read."""

FOLDER_ROLES = (TOKENIZER_JSON, TOKENIZER_DIRECTORY)
"""Roles whose files must lie in one directory under their names, without other files of a tokeniser."""

_PUBLISHED = "a published vocabulary, which its name finds"
_DATASET_STEPS = (CREATE, PACK, CONVERT, FEATURES)


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
            **({"inputs": [_make_input_json(one) for one in inputs]} if inputs else {}),
            "files": files,
            "documents": documents.as_texts(),
        }
    )


def _make_input_json(given: Input) -> dict[str, Any]:
    """Return an input of an export as the file lineage.json stores it."""
    cited = {} if given.record is None else {"record": given.record}
    return {"role": given.role, "files": [file.as_json() for file in given.files], **cited}


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
    _check_inputs(value.get("inputs", ()), where)
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


def _check_inputs(entries: Sequence[Mapping[str, Any]], where: str) -> None:
    """Raise ManifestError if what flags of the export named is not in the form that an export writes.

    entries: the list ``inputs`` of the file lineage.json, which matches its schema.
    where: path of the file, for error messages.
    """
    check_safe_names((file["name"] for entry in entries for file in entry["files"]), where)
    for entry in entries:
        role, count = entry["role"], len(entry["files"])
        if role in (VOCABULARY, MODEL_CONFIGURATION) and count != 1:
            raise ManifestError(f"{where}: inputs: {role}: lists {count} files, expected 1")
        if (role == TRAINING_DATA) != ("record" in entry):
            expected = "a record" if role == TRAINING_DATA else "no record"
            raise ManifestError(f"{where}: inputs: {role}: expected {expected}")


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
    if record is not None:
        found = _follow_record(role, record, "the dataset's manifest", documents, follow)
        if found.made_by is None or found.made_by.name in _DATASET_STEPS:
            return found
        told = f"the record with the md5 {record} is not the manifest of a dataset"
        return Input(role=role, record=record, remark=told, is_fault=True)
    files = tuple(LineageFile(**file) for file in entry["files"])
    if role != VOCABULARY:
        return Input(role=role, files=files, source=True)
    md5 = str(files[0].md5)
    if is_published_vocabulary(files[0].name, md5):
        return Input(role=role, files=files, source=True, remark=_PUBLISHED)
    manifest = find_vocabulary_manifest(documents, md5)
    if manifest is None:
        return Input(role=role, files=files, source=True, remark=OWN_VOCABULARY)
    step = follow(manifest, documents.paths[compute_md5(manifest)])
    return Input(role=role, files=files, record=step.record, made_by=step)


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
