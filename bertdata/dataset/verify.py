"""Verification of the files in a directory against the directory's manifest, or against a list of md5s.

The directory may be a dataset, parts (text files of sentences) or articles. All faults are reported, not only
the first.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bertdata.dataset.any_manifest import AnyManifest, parse_any_manifest
from bertdata.dataset.check import check_index, check_shard
from bertdata.dataset.companion_files import (
    FILES_BESIDE,
    make_companion_files,
    make_mds_index,
)
from bertdata.dataset.discover import find_manifest_directories, refuse_unfinished
from bertdata.dataset.findings import (
    EXTRA,
    LEFT_OUT,
    MISSING,
    Finding,
    Report,
    check_in_parallel,
    compare_values,
    make_misfit_finding,
    make_right_finding,
)
from bertdata.dataset.foreign_md5_lists import parse_md5_list
from bertdata.dataset.lengths import check_lengths
from bertdata.dataset.manifest import (
    LENGTHS_ENDING,
    Manifest,
    ShardEntry,
    make_lengths_name,
)
from bertdata.dataset.provenance import (
    DATASET_COPY,
    PARTS_COPY,
    VOCABULARY_COPY,
    check_vocabulary_manifest,
)
from bertdata.errors import BertDataError, ManifestError, MissingInputError, ShardError
from bertdata.io import storage
from bertdata.io.directory_protocol import find_nested_directories
from bertdata.io.file_check import FileEntry, check_file, compute_file_md5, compute_md5, is_inside
from bertdata.io.listing import list_inputs
from bertdata.io.manifest_file import MANIFEST_NAME, MD5SUMS_NAME, ListedFile, format_md5sums, parse_json
from bertdata.shards.containers import FAIRSEQ, is_shard_name
from bertdata.shards.content import compute_content_md5, count_readable_examples
from bertdata.shards.mds.names import INDEX_NAME, MDS
from bertdata.shards.packed.record_index import INDEX_ENDING, index_name
from bertdata.text.manifest import ARTICLES_COPY, TextManifest
from bertdata.tokens.fairseq_dictionary import DICTIONARY_NAME
from bertdata.tokens.files import name_in_dataset
from bertdata.tokens.training.manifest import KIND as VOCABULARY
from bertdata.tokens.training.manifest import parse_vocabulary_manifest


def verify_files(
    path: str,
    *,
    content: bool = False,
    anywhere: bool = False,
    on_file: Callable[[], None] = lambda: None,
) -> Report:
    """Verify the files that a path means.

    The path may be a directory with a manifest, a directory of such directories, a manifest, or an md5sum
    file.

    content: True compares the md5s of the shards' examples instead of the files' md5s. Files of the same
        examples that another program wrote then match.
    anywhere: True allows an md5sum file to list files outside its directory.
    on_file: function that is called after each file.
    """
    if storage.is_directory(path):
        return _verify_directory(path, content, anywhere, on_file)
    if not storage.exists(path):
        raise MissingInputError(f"{path}: no such file or directory")
    directory = storage.get_parent(path)
    if storage.get_base_name(path).endswith(".json"):
        return _verify_manifest(path, directory, content, on_file)
    return _verify_md5sums(path, directory, content, anywhere, on_file)


def lists_md5s(path: str) -> bool:
    """Return True if a directory, or a directory below it, has a manifest, or if it has a file MD5SUMS."""
    names = storage.list_files(path)
    return MD5SUMS_NAME in names or bool(find_manifest_directories(names))


def _verify_directory(path: str, content: bool, anywhere: bool, on_file: Callable[[], None]) -> Report:
    """Verify a directory by its manifest.

    Without a manifest, verify its sub-directories that have one. If there are none, use its MD5SUMS.
    """
    manifest = storage.join(path, MANIFEST_NAME)
    if storage.exists(manifest):
        return _verify_manifest(manifest, path, content, on_file)
    files = list_inputs(path, hidden=True).names
    refuse_unfinished(path, files)
    if inner := find_manifest_directories(files):
        reports = [_verify_directory(storage.join(path, name), content, anywhere, on_file) for name in inner]
        return Report(path=path, findings=tuple(f for report in reports for f in report.findings))
    if MD5SUMS_NAME in files:
        return _verify_md5sums(storage.join(path, MD5SUMS_NAME), path, content, anywhere, on_file)
    raise ManifestError(
        f"{path}: holds neither {MANIFEST_NAME} nor {MD5SUMS_NAME}; "
        "give --table to hold it against a published one, or --public-key to check its signature"
    )


def _verify_manifest(path: str, directory: str, content: bool, on_file: Callable[[], None]) -> Report:
    """Verify the files that a manifest lists, and look for other files in its directory."""
    data = storage.read_bytes(path)
    if parse_json(data, path).get("kind") == VOCABULARY:
        return _verify_vocabulary(data, path, directory)
    manifest = parse_any_manifest(data, path)

    objective = manifest.plan.objective if isinstance(manifest, Manifest) else None

    def check_entry(entry: ShardEntry | FileEntry) -> Finding:
        finding = (
            _check_shard(directory, entry, content, objective)
            if isinstance(entry, ShardEntry)
            else _check_plain_file(directory, entry)
        )
        on_file()
        return finding

    # 1. The listed files themselves, in parallel. This takes nearly all of the time.
    files: tuple[Any, ...] = manifest.shards if isinstance(manifest, Manifest) else manifest.files
    findings = [*_check_manifest_itself(manifest, data, path), *check_in_parallel(check_entry, files)]
    listed = _list_md5sums_files(manifest)
    findings += _check_md5sums_file(manifest, listed, directory)
    # 2. Small files that belong to the manifest: the vocabulary, copies of earlier manifests, lengths files
    # and indexes.
    companions = list(_list_companions(manifest, directory))
    for name, md5, must_be_there in companions:
        findings += _check_companion(storage.join(directory, name), md5, must_be_there)
    if isinstance(manifest, Manifest):
        findings += _check_vocabulary_copy(directory, str(manifest.plan.settings.vocabulary["md5"]))
        findings += [finding for shard in manifest.shards for finding in _check_lengths(directory, shard)]
        findings += [finding for shard in manifest.shards for finding in _check_index(directory, shard)]
        # Skip this check if a shard is damaged. The index is computed from the shards, so it would differ
        # too.
        if not any(finding.is_fault for finding in findings):
            findings += _check_mds_index(directory, manifest)
        findings += [
            Finding(file=entry.name, status=LEFT_OUT, detail=entry.reason, is_fault=False)
            for entry in manifest.skipped
        ]
    # 3. All other files in the directory are reported as extra.
    known = {
        *FILES_BESIDE,
        MANIFEST_NAME,
        MD5SUMS_NAME,
        *(file.name for file in listed),
        *(name for name, *_ in companions),
    }
    findings += [
        Finding(file=storage.join(directory, name), status=EXTRA, detail="the manifest does not list it")
        for name in list_own_files(directory)
        if name not in known
    ]
    return Report(path=directory, findings=tuple(findings))


def _verify_vocabulary(data: bytes, path: str, directory: str) -> Report:
    """Verify the vocabulary file that the manifest of a trained vocabulary lists."""
    manifest = parse_vocabulary_manifest(data, path)
    findings = [*_check_unedited(manifest.dump(), data, path), _check_plain_file(directory, manifest.file)]
    return Report(path=path, findings=tuple(findings))


def _list_companions(manifest: AnyManifest, directory: str) -> Iterable[tuple[str, str | None, bool]]:
    """Yield the small files that belong to a manifest, as (name, md5, True if the file must exist).

    The md5 is None if the manifest does not record it. The copy of the articles' manifest may be missing,
    because the parts' directory may not have one. Its md5 is recorded only in the parts' manifest, so it
    cannot be checked for a dataset.
    """
    if isinstance(manifest, Manifest):
        tokenizer = manifest.plan.settings.tokenizer
        yield name_in_dataset(tokenizer), str(tokenizer["vocabulary"]["md5"]), True
        yield VOCABULARY_COPY, None, False
        if manifest.plan.packed_from is not None:
            yield DATASET_COPY, manifest.plan.packed_from, True
        if manifest.plan.settings.container["format"] == FAIRSEQ:
            yield DICTIONARY_NAME, None, True
        if manifest.plan.settings.container["format"] == MDS:  # _check_mds_index compares its contents later
            yield INDEX_NAME, None, True
        else:
            for name, data in make_companion_files(
                directory, manifest.plan.settings, manifest.shards
            ).items():
                yield name, compute_md5(data), True
        if manifest.parts_manifest is not None:
            yield PARTS_COPY, manifest.parts_manifest, True
            yield ARTICLES_COPY, None, False
    elif isinstance(manifest, TextManifest) and manifest.articles_manifest is not None:
        yield ARTICLES_COPY, manifest.articles_manifest, False


def _check_companion(path: str, md5: str | None, must_be_there: bool) -> list[Finding]:
    if not storage.exists(path):
        return [Finding(file=path, status=MISSING)] if must_be_there else []
    found = compute_file_md5(path)
    return [] if md5 in (None, found) else [compare_values(path, "wrong md5", found, str(md5))]


def _check_vocabulary_copy(directory: str, md5: str) -> list[Finding]:
    """Return a fault if a dataset's copy of the manifest of its vocabulary is damaged.

    Otherwise return an empty list.
    md5: md5 of the vocabulary.
    """
    path = storage.join(directory, VOCABULARY_COPY)
    data = storage.read_if_present(path)
    if data is None:
        return []
    try:
        check_vocabulary_manifest(data, path, md5)
    except ManifestError as error:
        return [Finding(file=path, status="damaged", detail=_strip_path(path, error))]
    return []


def list_own_files(directory: str) -> list[str]:
    """Return the names of the files below the directory, without sub-directories that bertdata wrote."""
    names = storage.list_files(directory)
    inner = tuple(f"{name}/" for name in find_nested_directories(names))
    return [name for name in names if not name.startswith(inner)] if inner else names


def _check_manifest_itself(manifest: AnyManifest, data: bytes, path: str) -> list[Finding]:
    """Return a fault if the manifest was edited so that it contradicts itself.

    Otherwise return an empty list.
    """
    if isinstance(manifest, Manifest):
        recorded = str(parse_json(data, path)["settings_digest"])
        digest = str(manifest.as_json()["settings_digest"])
        if recorded != digest:
            return [Finding(file=path, status="wrong settings digest", found=recorded, expected=digest)]
    return _check_unedited(manifest.dump(), data, path)


def _check_unedited(made: bytes, data: bytes, path: str) -> list[Finding]:
    """Return a fault unless a manifest has exactly the bytes that bertdata would write for its contents.

    made: the bytes that bertdata would write.
    data: the bytes of the manifest.
    """
    if made == data:
        return []
    detail = "it is not what its own entries make: totals, order or layout"
    return [Finding(file=path, status="edited", detail=detail)]


def _list_md5sums_files(manifest: AnyManifest) -> Sequence[ListedFile]:
    """Return the files that MD5SUMS must list, except the manifest."""
    return manifest.listed if isinstance(manifest, Manifest) else manifest.files


def _check_md5sums_file(manifest: AnyManifest, listed: Sequence[ListedFile], directory: str) -> list[Finding]:
    path = storage.join(directory, MD5SUMS_NAME)
    if not storage.exists(path):
        return [Finding(file=path, status=MISSING)]
    right = [manifest.md5sums()]
    if isinstance(manifest, Manifest) and manifest.version_2 is not None:
        right.append(format_md5sums(listed))  # early versions wrote no line for the manifest
    if storage.read_bytes(path) not in right:
        return [Finding(file=path, status="differs", detail=f"it does not say what {MANIFEST_NAME} says")]
    return []


def _check_lengths(directory: str, shard: ShardEntry) -> list[Finding]:
    """Return a fault if the shard's lengths file is missing or wrong. Otherwise return an empty list."""
    path = storage.join(directory, make_lengths_name(shard.name))
    try:
        misfit = check_lengths(directory, shard)
    except BertDataError as error:
        return [Finding(file=path, status="unreadable", detail=_strip_path(path, error))]
    return [make_misfit_finding(path, misfit)] if misfit else []


def _check_index(directory: str, shard: ShardEntry) -> list[Finding]:
    """Return a fault if the shard's index file is missing or wrong. Otherwise return an empty list."""
    misfit = check_index(directory, shard)
    return [make_misfit_finding(storage.join(directory, index_name(shard.name)), misfit)] if misfit else []


def _check_mds_index(directory: str, manifest: Manifest) -> list[Finding]:
    """Return a fault if the MDS index differs from an index that is newly made from the shards.

    The shards must have no faults.
    """
    if manifest.plan.settings.container["format"] != MDS:
        return []
    path = storage.join(directory, INDEX_NAME)
    try:
        expected = make_mds_index(directory, manifest.plan.settings, manifest.shards)
    except BertDataError as error:
        return [Finding(file=path, status="unreadable", detail=_strip_path(path, error))]
    if storage.read_bytes(path) == expected:
        return []
    return [
        Finding(
            file=path, status="differs", detail=f"it does not say what the shards and {MANIFEST_NAME} say"
        )
    ]


def _check_plain_file(directory: str, entry: FileEntry) -> Finding:
    """Return the finding for a file of which only the size and the md5 are compared."""
    path = storage.join(directory, entry.name)
    try:
        misfit = check_file(path, entry.bytes, entry.md5)
    except BertDataError as error:
        return Finding(file=path, status="unreadable", detail=_strip_path(path, error))
    return make_misfit_finding(path, misfit) if misfit else make_right_finding(path)


def _check_shard(directory: str, shard: ShardEntry, content: bool, objective: str | None) -> Finding:
    """Return the finding for a shard.

    content: True compares the examples instead of the bytes of the file.
    """
    path = storage.join(directory, shard.name)
    try:
        misfit = check_shard(directory, shard, "examples" if content else "counted", objective)
        if misfit is None:
            return make_right_finding(path)
        damage = None if content or misfit.status == MISSING else _describe_damage(path, objective)
        return make_misfit_finding(path, misfit, damage)
    except ShardError as error:
        return Finding(file=path, status="damaged", detail=_strip_path(path, error))
    except BertDataError as error:
        return Finding(file=path, status="unreadable", detail=_strip_path(path, error))


def _describe_damage(path: str, objective: str | None = None) -> str:
    """Read a shard whose md5 is wrong. Return a text that names the first damaged record, if there is one."""
    if not storage.read_size(path):
        return "it is empty"
    try:
        records = count_readable_examples(path, None, objective)
    except BertDataError as error:
        return _strip_path(path, error)
    return f"each of its {records} records can be read: it is another file, or was changed with care"


def _strip_path(path: str, error: Exception) -> str:
    return str(error).removeprefix(f"{path}: ")


def _verify_md5sums(
    path: str, directory: str, content: bool, anywhere: bool, on_file: Callable[[], None]
) -> Report:
    """Verify the files that a list of md5s names."""
    expected = [
        (md5, _make_relative(directory, name)) for md5, name in parse_md5_list(storage.read_bytes(path), path)
    ]

    def check_line(item: tuple[str, str]) -> Finding:
        md5, name = item
        file = name if name.startswith("/") or storage.is_remote(name) else storage.join(directory, name)
        on_file()
        if not (anywhere or is_inside(name)):
            return Finding(
                file=name, status="outside", detail="not in the list's own directory; --anywhere checks it"
            )
        if not storage.exists(file):
            return Finding(file=file, status=MISSING)
        try:
            if (
                content
                and storage.get_base_name(name) != MANIFEST_NAME
                and not name.endswith((LENGTHS_ENDING, INDEX_ENDING))
            ):
                return compare_values(file, "wrong content md5", compute_content_md5(file), md5)
            found = compute_file_md5(file)
            damage = _describe_damage(file) if found != md5 and is_shard_name(file) else None
            return compare_values(file, "wrong md5", found, md5, damage)
        except ShardError as error:
            return Finding(file=file, status="damaged", detail=_strip_path(file, error))
        except BertDataError as error:
            return Finding(file=file, status="unreadable", detail=_strip_path(file, error))

    return Report(path=path, findings=tuple(check_in_parallel(check_line, expected)))


def _make_relative(directory: str, name: str) -> str:
    """Return the path of a listed file relative to the list's directory, if the file is below it."""
    if storage.is_remote(directory):
        return name
    above = os.path.abspath(directory.removeprefix("file://")).rstrip("/")
    return name.removeprefix(f"{above}/")
