"""Comparison of a rebuilt step with its record: the md5 of every file, then the manifest."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bertdata.config.manifest_versions import parse_dataset_json
from bertdata.dataset.manifest import DATASET_KIND
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5
from bertdata.io.manifest_file import MANIFEST_NAME, parse_json
from bertdata.lineages.commands.run_commands import find_checkpoint
from bertdata.lineages.documents import RecordDocuments
from bertdata.lineages.step import EXPORT, FINETUNE, PRETRAIN, TRAIN_VOCAB, Step
from bertdata.tokens.training.manifest import make_manifest_path

_CITATIONS = ("parts_manifest", "articles_manifest", "dataset_manifest")
"""Fields of manifests that cite the manifest of an earlier step, which is compared by itself."""
_VERSIONS = ("format_version", "versions", "settings_digest")
"""Fields that may differ between versions of programs although all other fields are equal."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A difference between a rebuilt step and its record.

    step: the step that differs.
    where: the rebuilt file, and for a manifest the field in it.
    found: what the rebuilt file has, such as its md5.
    expected: what the record has.
    """

    step: Step
    where: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.where}: found {self.found}, expected {self.expected}"


def compare_step(step: Step, output: str, documents: RecordDocuments) -> list[Difference]:
    """Return the differences between a rebuilt step and its record, the files first.

    output: file or directory that the step was rebuilt to.
    documents: the records of the lineage.
    """
    directory = output
    if step.name in (PRETRAIN, FINETUNE):
        directory = find_checkpoint(output, step)
    found = list(_compare_files(step, directory))
    if step.name in (PRETRAIN, FINETUNE, EXPORT):
        return found  # their records contain paths and versions, and their data are compared by themselves
    path = make_manifest_path(output) if step.name == TRAIN_VOCAB else storage.join(output, MANIFEST_NAME)
    return found + list(_compare_manifests(step, path, documents))


def _compare_files(step: Step, directory: str) -> Iterator[Difference]:
    """Yield a difference for each file that is missing or has another md5.

    directory: the directory with the files. For a vocabulary, the file itself.
    """
    for file in step.outputs:
        path = directory if step.name == TRAIN_VOCAB else storage.join(directory, file.name)
        expected = f"md5 {file.md5}"
        if not storage.exists(path):
            yield Difference(step=step, where=path, found="no such file", expected=expected)
        elif (md5 := compute_file_md5(path)) != file.md5:
            yield Difference(step=step, where=path, found=f"md5 {md5}", expected=expected)


def _compare_manifests(step: Step, path: str, documents: RecordDocuments) -> Iterator[Difference]:
    """Yield a difference for the first field of the rebuilt manifest that is not as recorded.

    Fields that the recorded manifest lacks do not count, because an earlier version may have written it.
    path: path of the rebuilt manifest.
    """
    recorded = documents.find(step.record)
    rebuilt = storage.read_if_present(path)
    if recorded is None or rebuilt is None:
        told = "no record" if recorded is None else "no such file"
        yield Difference(step=step, where=path, found=told, expected=f"md5 {step.record}")
        return
    if recorded == rebuilt:
        return
    expected, found = (
        _read_comparable(data, where) for data, where in ((recorded, step.record), (rebuilt, path))
    )
    for field, ours, theirs in _find_differences(found, expected, ""):
        yield Difference(step=step, where=f"{path}: {field}", found=ours, expected=theirs)
        return


def _read_comparable(data: bytes, where: str) -> dict[str, Any]:
    """Return a manifest's JSON without the fields that are compared elsewhere.

    A dataset's manifest of format version 2 is converted to version 3.
    """
    value = parse_json(data, where)
    if value.get("kind", DATASET_KIND) == DATASET_KIND:
        value = dict(parse_dataset_json(data, where).value)
    kept = {name: item for name, item in value.items() if name not in (*_CITATIONS, *_VERSIONS)}
    if value.get("kind") == "vocabulary":  # names of texts depend on the folder that contains all of them
        kept["inputs"] = sorted(str(entry["md5"]) for entry in value.get("inputs", ()))
        kept.pop("md5", None)
    return kept


def _find_differences(found: Any, expected: Any, place: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each value that is not as expected, with the value found and the value expected."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for name, value in expected.items():
            yield from _find_differences(found.get(name), value, f"{place}/{name}" if place else name)
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        for number, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            yield from _find_differences(ours, theirs, f"{place}/{number}")
    elif found != expected:
        yield place, _shorten(found), _shorten(expected)


def _shorten(value: Any) -> str:
    """Return a value as text that is short enough for a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def describe_versions(step: Step, found: Mapping[str, str]) -> str:
    """Return which versions differ from those of the record, as text, or "" if none does.

    found: versions of packages that are installed here, by name.
    """
    # Some builds of torch name their build, as in 2.13.0+cpu, and others do not.
    others = [
        f"{name} {found[name]} here, {version} in the record"
        for name, version in step.versions.items()
        if name in found and found[name] not in (version, version.partition("+")[0])
    ]
    return ", ".join(others)
