"""Verification of the steps that lead from a Wikipedia dump to a dataset, by the manifest of each step.

Each manifest contains the md5 of the manifest of the step before it. The steps are followed backwards::

    packed dataset <- dataset <- parts <- articles <- dump

Each directory contains copies of the manifests of the data that it was made from. A packed dataset has a copy
of the original dataset's manifest. A dataset has copies of the manifests of its parts (text with one sentence
per line) and of its articles. A directory of parts has a copy of the manifest of its articles. The steps can
therefore be followed even if those directories no longer exist. The directories themselves are verified only
if the user names them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bertdata.dataset.any_manifest import AnyManifest, parse_any_manifest
from bertdata.dataset.binarised_manifest import BinarisedManifest
from bertdata.dataset.discover import find_manifest_directories
from bertdata.dataset.findings import ChainLink, Finding, Report, compare_values, make_misfit_finding
from bertdata.dataset.manifest import Manifest
from bertdata.dataset.provenance import DATASET_COPY, PARTS_COPY
from bertdata.dataset.verify import verify_files
from bertdata.errors import ManifestError, MissingInputError
from bertdata.io import storage
from bertdata.io.file_check import FileEntry, check_file, compute_md5
from bertdata.io.listing import list_inputs
from bertdata.io.manifest_file import MANIFEST_NAME, SizedFile
from bertdata.sources.kinds import is_articles_kind
from bertdata.text.languages import ENGLISH, find_language
from bertdata.text.manifest import ARTICLES_COPY, RECORDS, TextManifest
from bertdata.text.punkt.variants import find_variant
from bertdata.wiki.articles.manifest import ArticlesManifest


def verify_chain(path: str, sources: Sequence[str] = (), *, content: bool = False) -> Report:
    """Verify the files of a directory, then follow the manifests of earlier steps back to the Wikipedia dump.

    A fault is an md5 or an input that does not match, or a source that does not belong to these steps. If the
    steps end before the dump, this is no fault.

    path: the directory.
    sources: directories of parts or articles, or the dump, which are verified too.
    content: True compares the md5s of the shards' examples instead of the md5s of the files. Shards in
        another file format then match.
    """
    report = verify_files(path, content=content)
    walks = [_ChainWalk(directory, sources) for directory in _find_directories(path)]
    for walk in walks:
        walk.run()
    findings = [*report.findings, *(finding for walk in walks for finding in walk.findings)]
    for source in sources:
        if storage.is_directory(source):
            findings += verify_files(source).findings
        if not any(source in walk.used for walk in walks):
            findings.append(
                Finding(file=source, status="no source", detail=f"nothing in the chain of {path} cites it")
            )
    return replace(
        report,
        # two phases have the same parts, so the same finding may occur twice
        findings=tuple(dict.fromkeys(findings)),
        links=tuple(link for walk in walks for link in walk.links),
    )


def _find_directories(path: str) -> list[str]:
    """Return the directories that the path means: itself, or its sub-directories that have a manifest."""
    if not storage.is_directory(path):
        if storage.get_base_name(path) != MANIFEST_NAME:
            raise ManifestError(f"{path}: has no chain; give a directory with a {MANIFEST_NAME}")
        return [storage.get_parent(path)]
    if storage.exists(storage.join(path, MANIFEST_NAME)):
        return [path]
    inner = find_manifest_directories(list_inputs(path, hidden=True).names)
    if not inner:
        raise ManifestError(f"{path}: holds no {MANIFEST_NAME}, so it has no chain")
    return [storage.join(path, name) for name in inner]


class _ChainWalk:
    """The steps from a directory's manifest back to the dump, collected by following the manifests one by
    one.

    links: the steps found so far.
    findings: the faults found so far.
    used: the sources of the user that belong to these steps.
    """

    def __init__(self, directory: str, sources: Sequence[str]) -> None:
        self.links: list[ChainLink] = []
        self.findings: list[Finding] = []
        self.used: set[str] = set()
        self._directory = directory
        self._sources = sources
        self._manifests = _read_manifests(sources)

    def run(self) -> None:
        """Follow the manifests until the dump, or until a manifest is not available.

        In each step, ``manifest`` is replaced with the manifest of the data that it was made from.
        """
        path = storage.join(self._directory, MANIFEST_NAME)
        data = storage.read_bytes(path)
        manifest = parse_any_manifest(data, path)
        step, md5 = _describe_manifest(manifest).partition(",")[0], compute_md5(data)
        self.links.append(
            ChainLink(
                directory=self._directory,
                step=step,
                description=_describe_manifest(manifest),
                manifest_md5=md5,
            )
        )
        if isinstance(manifest, BinarisedManifest):
            self._end_chain("the lines were made of files of text")
            return
        if isinstance(manifest, Manifest) and manifest.plan.packed_from is not None:
            packed = manifest
            source = self._find_cited_manifest(packed.plan.packed_from, DATASET_COPY, "dataset", Manifest)
            if not isinstance(source, Manifest):
                return
            self._check_packed(packed, source, path)
            manifest = source
        if isinstance(manifest, Manifest):
            parts = self._find_cited_manifest(manifest.parts_manifest, PARTS_COPY, "parts", TextManifest)
            if not isinstance(parts, TextManifest):
                return
            self._check_inputs([*manifest.inputs, *manifest.skipped], parts.files, "parts", PARTS_COPY)
            self._check_text(manifest.plan.settings.text, parts.splitting(), path)
            manifest = parts
        if isinstance(manifest, TextManifest):
            extracted = [one for one in manifest.inputs if is_articles_kind(one.kind)]
            if not extracted:
                records = manifest.settings["recipe"] == RECORDS
                self._end_chain(f"the parts were made of {'files of records' if records else 'plain text'}")
                return
            articles = self._find_cited_manifest(
                manifest.articles_manifest, ARTICLES_COPY, "articles", ArticlesManifest
            )
            if not isinstance(articles, ArticlesManifest):
                return
            self._check_inputs(extracted, articles.files, "articles", ARTICLES_COPY)
            manifest = articles
        if isinstance(manifest, ArticlesManifest):
            self._check_dump(manifest)

    def _check_packed(self, packed: Manifest, source: Manifest, path: str) -> None:
        """Report a fault if a packed dataset and its original have different inputs or numbers of examples.

        packed: manifest of the packed dataset.
        source: manifest of the original dataset.
        """
        for name in ("inputs", "skipped", "parts_manifest", "punkt"):
            found, expected = getattr(packed, name), getattr(source, name)
            if found != expected:
                self._add_fault(path, f"not the {name} of the dataset", str(found), str(expected))
        for name in ("examples", "tokens", "masked_tokens"):
            found, expected = (sum(getattr(shard, name) for shard in one.shards) for one in (packed, source))
            if found != expected:
                self._add_fault(path, f"wrong number of {name}", str(found), str(expected))

    def _find_cited_manifest(
        self, cited: str | None, copy: str, step: str, kind: type[AnyManifest]
    ) -> AnyManifest | None:
        """Return the manifest of the step before this one, from a copy in the directory or from a source of
        the user.

        If no available manifest has the cited md5, the steps end here and the result is None.

        cited: md5 of the earlier manifest. None if the earlier step had no manifest.
        copy: file name of the copy.
        step: name of the earlier step, such as "parts".
        kind: class of the earlier manifest.
        """
        if cited is None:
            self._end_chain(f"no manifest was beside the {step} when they were read")
            return None
        path = storage.join(self._directory, copy)
        source = self._manifests.get(cited)
        if source is not None:
            self.used.add(storage.get_parent(source[0]))
        data = storage.read_if_present(path)
        if data is None:
            if source is None:
                self._end_chain(
                    f"the manifest of the {step}, md5 {cited}, is not at hand ({copy} is missing)"
                )
                return None
            path, data = source
        if compute_md5(data) != cited:
            self.findings.append(compare_values(path, "wrong md5", compute_md5(data), cited))
            self._end_chain(f"{copy} is not the manifest that is cited")
            return None
        manifest = parse_any_manifest(data, path)
        if not isinstance(manifest, kind):
            self._add_fault(path, "wrong kind", type(manifest).__name__, kind.__name__)
            return None
        self.links.append(ChainLink(step=step, description=_describe_manifest(manifest), manifest_md5=cited))
        return manifest

    def _check_inputs(
        self, inputs: Sequence[SizedFile], files: Sequence[FileEntry], step: str, copy: str
    ) -> None:
        """Report a fault for each input that the manifest of the earlier step does not list with the same
        size and md5.

        inputs: the inputs of a step.
        files: the files that the earlier step wrote.
        """
        listed = {entry.name: entry for entry in files}
        for item in inputs:
            entry = listed.get(item.name)
            found = f"{item.bytes} bytes, md5 {item.md5}"
            expected = "not listed" if entry is None else f"{entry.bytes} bytes, md5 {entry.md5}"
            if found != expected:
                where = f"{self._directory}: input {item.name}"
                self.findings.append(
                    Finding(
                        file=where,
                        status=f"not of these {step}",
                        found=found,
                        expected=expected,
                        detail=f"as {copy} says",
                    )
                )

    def _check_text(self, found: dict[str, Any], expected: dict[str, Any], path: str) -> None:
        """Report a fault unless the manifests of a dataset and of its parts name the same splitter."""
        for name in {**expected, **found}:
            if found.get(name) != expected.get(name):
                self._add_fault(path, name, str(found.get(name)), str(expected.get(name)))

    def _check_dump(self, articles: ArticlesManifest) -> None:
        """Add the dump as a step, and report a fault if the user named another dump."""
        dump = articles.source
        told = f"{dump.name}, {dump.bytes} bytes, md5 {dump.md5}, date {articles.report.date}"
        self.links.append(ChainLink(step="dump", description=told))
        for source in self._sources:
            if not storage.is_directory(source):
                self.used.add(source)
                if misfit := check_file(source, dump.bytes, dump.md5):
                    self.findings.append(
                        make_misfit_finding(source, misfit, "it is not the dump of the articles")
                    )

    def _end_chain(self, reason: str) -> None:
        """Add a last step without a manifest, which says why the earlier steps are not known."""
        self.links.append(ChainLink(step="", description=reason))

    def _add_fault(self, file: str, status: str, found: str, expected: str) -> None:
        self.findings.append(Finding(file=file, status=status, found=found, expected=expected))


def _read_manifests(sources: Sequence[str]) -> Mapping[str, tuple[str, bytes]]:
    """Return the path and the bytes of the manifest in each source directory, by the md5 of the manifest."""
    found = {}
    for source in sources:
        if not storage.exists(source):
            raise MissingInputError(f"{source}: no such file or directory")
        if storage.is_directory(source):
            path = storage.join(source, MANIFEST_NAME)
            data = storage.read_bytes(path)
            found[compute_md5(data)] = path, data
    return found


def _describe_manifest(manifest: AnyManifest) -> str:
    """Return a line of text about what a manifest describes, such as the number of its files."""
    if isinstance(manifest, Manifest):
        return f"dataset, {manifest.plan.title}, {_count_things(len(manifest.shards), 'shard')}"
    files = _count_things(len(manifest.files), "file")
    if isinstance(manifest, BinarisedManifest):
        return f"binarised lines of {_count_things(len(manifest.inputs), 'file')} of text, {files}"
    if isinstance(manifest, TextManifest):
        return f"text, {manifest.settings['recipe']}, {_describe_splitting(manifest)}, {files}"
    return f"articles, {manifest.extractor['name']} {manifest.extractor['version']}, {files}"


def _describe_splitting(manifest: TextManifest) -> str:
    """Return a text that names the sentence splitter of a directory of parts."""
    if manifest.punkt is None:
        if (lines := manifest.settings.get("sentences", "punkt")) != "punkt":
            return f"sentences {lines}"
        return f"{manifest.language} by {find_language(manifest.language).splitting}"
    told = "" if manifest.language == ENGLISH else f" of {manifest.language}"
    if (field := manifest.settings.get("language_field")) is not None:
        told = f" of the language in each record's field {field!r}"
    return f"Punkt {find_variant(manifest.punkt['variant'])}{told}"


def _count_things(number: int, thing: str) -> str:
    """Return a number with its noun, in the plural where needed."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
