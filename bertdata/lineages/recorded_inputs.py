"""Inputs that flags of an export or a run named, read from the list ``inputs`` of a record."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bertdata.errors import ManifestError
from bertdata.io.assets import is_published_vocabulary
from bertdata.io.file_check import check_safe_names, compute_md5
from bertdata.lineages.data_steps import OWN_VOCABULARY, find_vocabulary_manifest
from bertdata.lineages.documents import RecordDocuments
from bertdata.lineages.flag_files import FILE_ROLES, MODEL_CONFIGURATION, VOCABULARY
from bertdata.lineages.step import Input, LineageFile, Step

_PUBLISHED = "a published vocabulary, which its name finds"


def check_flag_inputs(entries: Sequence[Mapping[str, Any]], where: str) -> None:
    """Raise ManifestError if what flags named is not in the form that an export or a run writes.

    entries: the list ``inputs`` of a record, which matches the record's schema.
    where: path of the record, for error messages.
    """
    check_safe_names((file["name"] for entry in entries for file in entry["files"]), where)
    for entry in entries:
        role, count = entry["role"], len(entry["files"])
        if role in (VOCABULARY, MODEL_CONFIGURATION) and count != 1:
            raise ManifestError(f"{where}: inputs: {role}: lists {count} files, expected 1")
        if (role in FILE_ROLES) == ("record" in entry):
            expected = "no record" if role in FILE_ROLES else "a record"
            raise ManifestError(f"{where}: inputs: {role}: expected {expected}")


def make_file_input(
    entry: Mapping[str, Any], documents: RecordDocuments, follow: Callable[[bytes, str], Step]
) -> Input:
    """Return the files that ``--vocab`` or ``--model-config`` named.

    A vocabulary has the step that trained it, if a manifest of ``train-vocab`` is at hand.

    entry: what the list ``inputs`` of a record says about the flag.
    documents: the records that are at hand.
    follow: function that returns the step of a record.
    """
    role, files = entry["role"], tuple(LineageFile(**file) for file in entry["files"])
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
