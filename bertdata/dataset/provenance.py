"""Manifests of the data that a dataset was made from: how they are found, and where the dataset keeps copies.

These are the manifest of the text parts that the dataset was made from, the manifest of the articles that the
parts were made from, the manifest of the vocabulary that ``train-vocab`` wrote, and for a packed dataset the
manifest of the original dataset. The copies are kept in ``sources/``, so that the origin of a dataset is
known even if the other directories no longer exist.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bertdata.dataset.manifest import InputEntry, SkippedEntry
from bertdata.errors import InputError, ManifestError
from bertdata.io import storage
from bertdata.io.file_check import compute_md5
from bertdata.io.manifest_file import MANIFEST_NAME, parse_json
from bertdata.text.manifest import ARTICLES_COPY, TEXT_KIND, TextManifest, parse_text_manifest
from bertdata.tokens.training.manifest import make_manifest_path, parse_vocabulary_manifest

PARTS_COPY = "sources/parts.json"
"""Path of a dataset's copy of the manifest of its text parts."""

DATASET_COPY = "sources/dataset.json"
"""Path of a packed dataset's copy of the original dataset's manifest."""

VOCABULARY_COPY = "sources/vocabulary.json"
"""Path of a dataset's copy of the manifest of its vocabulary, if ``train-vocab`` made the vocabulary."""

COPY_NAMES = (DATASET_COPY, PARTS_COPY, ARTICLES_COPY, VOCABULARY_COPY)


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """The manifests of the data that a dataset was made from, as bytes. Each is None if it is not available.

    parts: manifest of the text parts.
    articles: manifest of the articles.
    dataset: for a packed dataset, the manifest of the original dataset.
    vocabulary: manifest of the vocabulary.
    """

    parts: bytes | None = None
    articles: bytes | None = None
    dataset: bytes | None = None
    vocabulary: bytes | None = None

    @property
    def parts_md5(self) -> str | None:
        """The md5 of the parts' manifest, which the dataset's manifest records.

        It is None if the parts have no manifest.
        """
        return None if self.parts is None else compute_md5(self.parts)

    @property
    def text(self) -> dict[str, Any]:
        """The sentence splitter that made the parts, in the form of the record ``text`` in the dataset's
        manifest.
        """
        return {"punkt": None} if self.parts is None else self._parse_listing().splitting()

    @property
    def between(self) -> str | None:
        """The text that separates two sentences of a paragraph, such as a space.

        It is None if the parts have no manifest.
        """
        return None if self.parts is None else self._parse_listing().between

    def files(self) -> Mapping[str, bytes]:
        """Return the manifests that are available, by the path of their copy in the dataset."""
        found = {
            DATASET_COPY: self.dataset,
            PARTS_COPY: self.parts,
            ARTICLES_COPY: self.articles,
            VOCABULARY_COPY: self.vocabulary,
        }
        return {name: data for name, data in found.items() if data is not None}

    def check_inputs(self, inputs: Sequence[InputEntry | SkippedEntry]) -> None:
        """Raise InputError if an input is not the file that the parts' manifest describes."""
        if self.parts is None:
            return
        listed = {entry.name: entry for entry in self._parse_listing().files}
        for item in inputs:
            entry = listed.get(item.name)
            if entry is None or (entry.bytes, entry.md5) != (item.bytes, item.md5):
                expected = (
                    "nothing of that name" if entry is None else f"{entry.bytes} bytes, md5 {entry.md5}"
                )
                raise InputError(
                    f"{item.name}: found {item.bytes} bytes, md5 {item.md5}, but the {MANIFEST_NAME} beside "
                    f"it lists {expected}; run bertdata segment again, or remove that {MANIFEST_NAME} if the "
                    "parts were changed on purpose"
                )

    def _parse_listing(self) -> TextManifest:
        assert self.parts is not None
        return parse_text_manifest(self.parts, PARTS_COPY)


NO_PROVENANCE = Provenance()
"""Provenance of inputs without a manifest."""


def find_provenance(parts: Sequence[str]) -> Provenance:
    """Return the manifests of the data that text parts were made from, starting with the manifest beside the
    parts.

    The result is empty unless all parts are in one directory, whose manifest lists all of them.

    Raises InputError if the size of a part differs from the manifest.
    """
    directories = {storage.get_parent(part) for part in parts}
    if len(directories) != 1:
        return NO_PROVENANCE
    (directory,) = directories
    path = storage.join(directory, MANIFEST_NAME)
    data = storage.read_if_present(path)
    if data is None or parse_json(data, path).get("kind") != TEXT_KIND:
        return NO_PROVENANCE
    listed = {entry.name: entry.bytes for entry in parse_text_manifest(data, path).files}
    names = list(map(storage.get_base_name, parts))
    if not listed.keys() >= set(names):
        return NO_PROVENANCE
    for part, name, size in zip(parts, names, storage.map_paths(list(parts), storage.read_size), strict=True):
        if size != listed[name]:
            raise InputError(
                f"{part}: found {size} bytes, but the {MANIFEST_NAME} beside it lists {listed[name]}; run "
                f"bertdata segment again, or remove that {MANIFEST_NAME} if the parts were changed on purpose"
            )
    return Provenance(parts=data, articles=storage.read_if_present(storage.join(directory, ARTICLES_COPY)))


def read_packed_provenance(directory: str, manifest: bytes, parts_md5: str | None) -> Provenance:
    """Return the manifests of the data that a packed dataset was made from.

    These are the manifest of the original dataset, and the copies of manifests that the original dataset
    keeps.

    directory: path of the original dataset.
    manifest: manifest of the original dataset.
    parts_md5: md5 of the parts' manifest, which the original dataset's manifest records.
    """
    found = Provenance(
        dataset=manifest, vocabulary=storage.read_if_present(storage.join(directory, VOCABULARY_COPY))
    )
    parts = None if parts_md5 is None else storage.read_if_present(storage.join(directory, PARTS_COPY))
    if parts is None or compute_md5(parts) != parts_md5:
        return found
    articles = storage.read_if_present(storage.join(directory, ARTICLES_COPY))
    return replace(found, parts=parts, articles=articles)


def add_vocabulary_manifest(provenance: Provenance, vocabulary: str, md5: str) -> Provenance:
    """Return the provenance with the manifest that lies beside a vocabulary, if ``train-vocab`` wrote it.

    A manifest of another vocabulary is not taken, also if it was in the provenance before.

    vocabulary: path of the vocabulary.
    md5: md5 of the vocabulary.
    """
    beside = make_manifest_path(vocabulary)
    data = provenance.vocabulary or storage.read_if_present(beside)
    if data is None:
        return provenance
    try:
        check_vocabulary_manifest(data, beside, md5)
    except ManifestError:  # it says nothing about the dataset itself, which can be made without it
        return replace(provenance, vocabulary=None)
    return replace(provenance, vocabulary=data)


def check_vocabulary_manifest(data: bytes, where: str, md5: str) -> None:
    """Raise ManifestError unless the bytes are the manifest that ``train-vocab`` wrote for a vocabulary.

    No record cites this manifest by its md5, because the names of the texts in it depend on the folder that
    contains all of them. It has its own md5 instead. Without it, as in earlier versions, a change of a single
    value, such as the name of a text, cannot be found.

    where: path of the manifest, for the error message.
    md5: md5 of the vocabulary.
    """
    manifest = parse_vocabulary_manifest(data, where)
    if manifest.file.md5 != md5:
        raise ManifestError(
            f"{where}: is the manifest of another vocabulary: found md5 {manifest.file.md5}, expected "
            f"md5 {md5}"
        )
    if manifest.dump() != data:
        raise ManifestError(f"{where}: is not what its own entries make, so it was changed")
