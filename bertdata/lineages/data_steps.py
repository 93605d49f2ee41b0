"""Steps that made data: each manifest becomes a step, with the steps before it as its inputs.

The manifests are those of datasets, parts (text files with one sentence per line), articles, binarised text
and vocabularies. A manifest cites the manifest of the step before it by md5.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from bertdata.dataset.any_manifest import parse_any_manifest
from bertdata.dataset.binarised_manifest import BinarisedManifest
from bertdata.dataset.manifest import UNICODE_VERSION, Manifest
from bertdata.dataset.provenance import (
    DATASET_COPY,
    PARTS_COPY,
    VOCABULARY_COPY,
    check_vocabulary_manifest,
)
from bertdata.errors import ManifestError
from bertdata.io import storage
from bertdata.io.file_check import compute_md5
from bertdata.io.manifest_file import SizedFile, parse_json
from bertdata.lineages.documents import RecordDocuments
from bertdata.lineages.step import (
    BINARISE,
    CONVERT,
    CREATE,
    EXTRACT,
    FEATURES,
    PACK,
    SEGMENT,
    TRAIN_VOCAB,
    Input,
    LineageFile,
    Step,
)
from bertdata.sources.kinds import is_articles_kind
from bertdata.text.manifest import ARTICLES_COPY, TextManifest
from bertdata.text.settings import LEFT_OUT_COUNTS
from bertdata.tokens.files import name_in_dataset
from bertdata.tokens.training.manifest import KIND as VOCABULARY_KIND
from bertdata.tokens.training.manifest import parse_vocabulary_manifest
from bertdata.wiki.articles.manifest import ArticlesManifest

FEATURE_OBJECTIVES = ("squad", "classification", "regression")
"""Objectives of examples that the trainer makes from the labelled data of a fine-tuning task."""

_MOST_NESTED = 20
"""Largest number of steps on data that follow one another. The longest chain of the commands has five or six:
extract, segment, create, pack, convert. More are in files that were made to exhaust the memory.
"""
_NO_MANIFEST = "no manifest was beside these files when they were read, so they count as the user's own"
OWN_VOCABULARY = "no manifest says how it was trained, so it counts as the user's own"
"""Remark about a vocabulary that is a source."""


def list_lineage_files(entries: Iterable[SizedFile]) -> tuple[LineageFile, ...]:
    """Return the files that manifest entries describe."""
    return tuple(LineageFile(name=one.name, md5=one.md5, bytes=one.bytes) for one in entries)


def make_data_step(data: bytes, where: str, documents: RecordDocuments, directory: str = "") -> Step:
    """Return the step that wrote a manifest, with all steps before it.

    data: the manifest.
    where: path of the manifest, for error messages.
    documents: the records that are at hand, in which the manifests of earlier steps are looked for.
    directory: the directory that the step wrote. Empty if only a copy of the manifest is at hand.

    Raises ManifestError if the manifest cannot be read.
    """
    if parse_json(data, where).get("kind") == VOCABULARY_KIND:
        return _make_vocabulary_step(data, where, directory)
    return _DataSteps(documents, directory).make(data, where, directory)


class _DataSteps:
    """The steps that led to one directory, made from its manifest and the manifests that this cites."""

    def __init__(self, documents: RecordDocuments, directory: str) -> None:
        self._documents, self._directory = documents, directory
        self._depth = 0

    def make(self, data: bytes, where: str, directory: str = "") -> Step:
        """Return the step that wrote a manifest, with all steps before it.

        Raises ManifestError if more than _MOST_NESTED manifests cite one another.
        """
        if self._depth >= _MOST_NESTED:
            raise ManifestError(f"{where}: more than {_MOST_NESTED} steps follow one another")
        self._depth += 1
        try:
            return self._make(data, where, directory)
        finally:
            self._depth -= 1

    def _make(self, data: bytes, where: str, directory: str) -> Step:
        """Return the step that wrote a manifest, by the kind of the manifest."""
        manifest, record = parse_any_manifest(data, where), compute_md5(data)
        if isinstance(manifest, Manifest):
            return self._make_dataset_step(manifest, record, directory)
        if isinstance(manifest, TextManifest):
            return self._make_text_step(manifest, record, directory)
        if isinstance(manifest, BinarisedManifest):
            return _make_binarised_step(manifest, record, directory)
        return _make_articles_step(manifest, record, directory)

    def _make_dataset_step(self, manifest: Manifest, record: str, directory: str) -> Step:
        """Return the step that wrote a dataset: create, pack, convert or the features of a task."""
        plan = manifest.plan
        container, objective = plan.settings.container, plan.settings.objective
        name = CREATE
        if container.get("packing") is not None:
            name = PACK
        elif plan.packed_from is not None:
            name = CONVERT
        elif plan.objective in FEATURE_OBJECTIVES:
            name = FEATURES
        inputs = [self._make_dataset_input(manifest, name)]
        if name in (CREATE, FEATURES):
            inputs.append(self._make_vocabulary_input(manifest, inputs[0].made_by))
        facts: dict[str, Any] = {
            "examples": sum(shard.examples for shard in manifest.shards),
            "tokens": sum(shard.tokens for shard in manifest.shards),
        }
        if manifest.skipped:
            facts["inputs left out"] = [entry.name for entry in manifest.skipped]
        if manifest.version_2 is not None:
            facts["manifest"] = "of format version 2"
        if "unverified" in objective:
            facts["read"] = "unverified, from files without a manifest"
        return Step(
            name=name,
            path=directory,
            record=record,
            settings={"recipe": plan.recipe, "phase": plan.phase, **plan.settings.as_json()},
            versions={"Unicode": UNICODE_VERSION},
            inputs=tuple(inputs),
            outputs=list_lineage_files(manifest.shards),
            facts=facts,
        )

    def _make_dataset_input(self, manifest: Manifest, name: str) -> Input:
        """Return the examples or the text that a dataset was made from.

        name: name of the dataset's step.
        """
        texts = list_lineage_files([*manifest.inputs, *manifest.skipped])
        if name in (PACK, CONVERT):
            if manifest.plan.packed_from is None:
                return Input(
                    role="examples", remark="the examples had no manifest when they were read (--unverified)"
                )
            return self._follow("examples", manifest.plan.packed_from, DATASET_COPY, "the dataset's manifest")
        if manifest.parts_manifest is not None:
            return self._follow(
                "parts", manifest.parts_manifest, PARTS_COPY, "the parts' manifest", files=texts
            )
        role = "labelled data" if name == FEATURES else "parts"
        return Input(role=role, files=texts, source=True, remark="" if name == FEATURES else _NO_MANIFEST)

    def _make_vocabulary_input(self, manifest: Manifest, parts: Step | None) -> Input:
        """Return the tokeniser that a dataset was made with, and the step that trained it if it is known.

        parts: the step that made the dataset's text, if it is known. The vocabulary may be trained on it.
        """
        tokenizer = manifest.plan.settings.tokenizer
        md5 = tokenizer["vocabulary"]["md5"]
        files = (LineageFile(name=name_in_dataset(tokenizer), md5=md5),)
        found = find_vocabulary_manifest(self._documents, md5)
        if found is None and (fault := self._find_vocabulary_fault(md5)):
            return Input(role="vocabulary", files=files, remark=fault, is_fault=True)
        if found is None:
            return Input(role="vocabulary", files=files, source=True, remark=OWN_VOCABULARY)
        step = _make_vocabulary_step(found, self._documents.paths[compute_md5(found)], parts=parts)
        return Input(role="vocabulary", files=files, record=step.record, made_by=step)

    def _find_vocabulary_fault(self, md5: str) -> str:
        """Return what is wrong with the directory's copy of the vocabulary's manifest.

        Return "" if nothing is wrong, or if there is no copy. No manifest cites this copy, so it cannot be
        missing.
        md5: md5 of the vocabulary.
        """
        path = storage.join(self._directory, VOCABULARY_COPY) if self._directory else ""
        data = storage.read_if_present(path) if path else None
        if data is None:
            return ""
        try:
            check_vocabulary_manifest(data, path, md5)
        except ManifestError as error:
            return str(error)
        return ""

    def _make_text_step(self, manifest: TextManifest, record: str, directory: str) -> Step:
        """Return the step that wrote a directory of parts."""
        inputs, settings = [], dict(manifest.settings)
        articles = [entry for entry in manifest.inputs if is_articles_kind(entry.kind)]
        others = [entry for entry in manifest.inputs if not is_articles_kind(entry.kind)]
        if articles and manifest.articles_manifest is not None:
            inputs.append(
                self._follow(
                    "articles",
                    manifest.articles_manifest,
                    ARTICLES_COPY,
                    "the articles' manifest",
                    files=list_lineage_files(articles),
                )
            )
        elif articles:
            files = list_lineage_files(articles)
            inputs.append(Input(role="articles", files=files, source=True, remark=_NO_MANIFEST))
        if others:
            inputs.append(Input(role="text", files=list_lineage_files(others), source=True))
        if excluded := settings.get("exclude"):
            files = tuple(LineageFile(name=one["name"], md5=one["md5"]) for one in excluded)
            inputs.append(Input(role="texts to exclude", files=files, source=True))
        if md5 := settings.get("abbreviations"):
            files = (LineageFile(name="abbreviations", md5=md5),)
            inputs.append(Input(role="abbreviations", files=files, source=True))
        settings["punkt"] = manifest.punkt
        settings["input_kinds"] = {entry.name: entry.kind for entry in manifest.inputs}
        punkt = {} if manifest.punkt is None else {"Punkt": str(manifest.punkt["variant"])}
        counts = manifest.counts
        facts: dict[str, Any] = {"articles": counts.articles, "sentences": counts.sentences}
        facts |= {name: number for name in LEFT_OUT_COUNTS if (number := getattr(counts, name))}
        return Step(
            name=SEGMENT,
            path=directory,
            record=record,
            settings=settings,
            versions=punkt,
            inputs=tuple(inputs),
            outputs=list_lineage_files(manifest.files),
            facts=facts,
        )

    def _follow(
        self, role: str, record: str, copy: str, what: str, files: Sequence[LineageFile] = ()
    ) -> Input:
        """Return an input whose manifest is cited, with the step that wrote it if the manifest is at hand.

        role: the input's role.
        record: md5 of the cited manifest.
        copy: path of the copy within the directory that is followed.
        what: name of the manifest, for messages.
        files: the files that the citing manifest lists. Empty takes those of the cited manifest.
        """
        data = self._documents.find(record)
        if data is None:
            path = storage.join(self._directory, copy) if self._directory else ""
            remark, is_fault = self._documents.explain_absence(record, what, path)
            return Input(role=role, files=tuple(files), record=record, remark=remark, is_fault=is_fault)
        try:
            step = self.make(data, self._documents.paths[record] or copy)
        except ManifestError as error:
            return Input(role=role, files=tuple(files), record=record, remark=str(error), is_fault=True)
        wrong = _find_unlisted(files, step.outputs, what)
        return Input(
            role=role,
            files=tuple(files) or step.outputs,
            record=record,
            made_by=step,
            remark=wrong,
            is_fault=bool(wrong),
        )


def _find_unlisted(files: Sequence[LineageFile], outputs: Sequence[LineageFile], what: str) -> str:
    """Return the fault of an input that the step before it has not written, or "" if there is none.

    files: the files that a step has read.
    outputs: the files that the step before it has written.
    what: name of the manifest that lists the outputs, for the message.
    """
    written = {one.name: (one.bytes, one.md5) for one in outputs}
    for file in files:
        if written.get(file.name) != (file.bytes, file.md5):
            expected = written.get(file.name)
            told = "nothing of that name" if expected is None else f"{expected[0]} bytes, md5 {expected[1]}"
            return f"{file.name}: {file.bytes} bytes, md5 {file.md5} were read, but {what} lists {told}"
    return ""


def _make_articles_step(manifest: ArticlesManifest, record: str, directory: str) -> Step:
    """Return the step that wrote a directory of articles."""
    program, report = manifest.extractor, manifest.report
    facts: dict[str, Any] = {"date": report.date, "articles": report.written}
    if report.faults:
        facts["pages with faults"] = len(report.faults)
    return Step(
        name=EXTRACT,
        path=directory,
        record=record,
        settings={**manifest.settings, "extractor": program},
        versions={program["name"]: program["version"]},
        inputs=(Input(role="dump", files=list_lineage_files([manifest.source]), source=True),),
        outputs=list_lineage_files(manifest.files),
        facts=facts,
    )


def _make_binarised_step(manifest: BinarisedManifest, record: str, directory: str) -> Step:
    """Return the step that wrote text in fairseq's binary format."""
    vocabulary = LineageFile(name="vocabulary", md5=manifest.tokenizer["vocabulary"]["md5"])
    return Step(
        name=BINARISE,
        path=directory,
        record=record,
        settings={"tokenizer": manifest.tokenizer},
        inputs=(
            Input(role="text", files=list_lineage_files(manifest.inputs), source=True),
            Input(role="vocabulary", files=(vocabulary,), source=True, remark=OWN_VOCABULARY),
        ),
        outputs=list_lineage_files(manifest.files),
        facts={"lines": manifest.lines, "tokens": manifest.tokens},
    )


def _make_vocabulary_step(data: bytes, where: str, path: str = "", parts: Step | None = None) -> Step:
    """Return the step that trained a vocabulary.

    data: the vocabulary's manifest.
    path: path of the vocabulary. Empty if only its manifest is at hand.
    parts: a step that made text, if it is known. Files that it wrote are told apart from the user's own.
    """
    manifest = parse_vocabulary_manifest(data, where)
    files, written = list_lineage_files(manifest.inputs), parts.outputs if parts is not None else ()
    own = tuple(file for file in files if file not in written)
    inputs = []
    if parts is not None and len(own) < len(files):
        made = tuple(file for file in files if file in written)
        inputs.append(Input(role="parts", files=made, record=parts.record, made_by=parts))
    if own:
        inputs.append(Input(role="text", files=own, source=True))
    if not files:
        told = "its manifest does not list the texts that it was trained on"
        inputs.append(Input(role="text", remark=told))
    return Step(
        name=TRAIN_VOCAB,
        path=path,
        record=compute_md5(data),
        settings=manifest.settings,
        versions=manifest.versions,
        inputs=tuple(inputs),
        outputs=list_lineage_files([manifest.file]),
        facts=manifest.text,
    )


def find_vocabulary_manifest(documents: RecordDocuments, md5: str) -> bytes | None:
    """Return the manifest of the vocabulary file with this md5, or None if it is not at hand.

    A damaged manifest is not taken.
    """
    for record, data in documents.items():
        try:
            if parse_json(data, "").get("kind") != VOCABULARY_KIND:
                continue
            check_vocabulary_manifest(data, documents.paths[record], md5)
        except ManifestError:
            continue
        return data
    return None
