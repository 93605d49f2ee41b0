"""Find and keep the upstream manifests that a dataset cites.

Upstream manifests are those of the text parts that the dataset was made from, of the articles that the parts
were made from, and for a packed dataset of the dataset that was packed. A dataset keeps copies of these
manifests in ``sources/``, so that it can be traced back when the other directories are gone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertdata.dataset.manifest import InputEntry, SkippedEntry
from bertdata.errors import InputError, MissingInputError
from bertdata.io import storage
from bertdata.io.file_check import compute_md5
from bertdata.io.manifest_file import MANIFEST_NAME, parse_json
from bertdata.text.manifest import ARTICLES_COPY, TEXT_KIND, TextManifest, parse_text_manifest

PARTS_COPY = "sources/parts.json"
"""Path of a dataset's copy of its parts' manifest. ARTICLES_COPY is the path of its copy of the articles'
manifest.
"""

DATASET_COPY = "sources/dataset.json"
"""Name of a packed dataset's copy of the manifest of the dataset that was packed."""

COPY_NAMES = (DATASET_COPY, PARTS_COPY, ARTICLES_COPY)


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """Upstream manifests as bytes, each None if it is not available.

    dataset: manifest of the dataset that was packed, for a packed dataset.
    """

    parts: bytes | None = None
    articles: bytes | None = None
    dataset: bytes | None = None

    @property
    def parts_md5(self) -> str | None:
        """The md5 of the parts' manifest, which the dataset's manifest stores.

        It is None without a manifest.
        """
        return None if self.parts is None else compute_md5(self.parts)

    @property
    def text(self) -> dict[str, Any]:
        """The sentence splitter of the parts, as the dataset's manifest stores it under ``text``."""
        return {"punkt": None} if self.parts is None else self._parse_listing().splitting()

    @property
    def between(self) -> str | None:
        """The text that separates two sentences of a paragraph, such as a space.

        It is None without a manifest.
        """
        return None if self.parts is None else self._parse_listing().between

    def files(self) -> Mapping[str, bytes]:
        """Return the manifests that are available, by the path of their copies in a dataset."""
        found = {DATASET_COPY: self.dataset, PARTS_COPY: self.parts, ARTICLES_COPY: self.articles}
        return {name: data for name, data in found.items() if data is not None}

    def check_inputs(self, inputs: Sequence[InputEntry | SkippedEntry]) -> None:
        """Raise InputError for an input that differs from the parts' manifest."""
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
    """Return the provenance of text parts, from the manifest next to them.

    The provenance is empty unless all parts lie in one directory whose manifest lists all of them.

    Raises InputError for a part whose size differs from the manifest.
    """
    directories = {storage.get_parent(part) for part in parts}
    if len(directories) != 1:
        return NO_PROVENANCE
    (directory,) = directories
    path = storage.join(directory, MANIFEST_NAME)
    data = _read_if_present(path)
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
    return Provenance(parts=data, articles=_read_if_present(storage.join(directory, ARTICLES_COPY)))


def read_packed_provenance(directory: str, manifest: bytes, parts_md5: str | None) -> Provenance:
    """Return the provenance of a packed dataset: the original dataset's manifest, and the manifests that this
    one cites.

    directory, manifest: path and manifest of the original dataset.
    parts_md5: md5 of the parts' manifest that the original dataset cites.
    """
    parts = None if parts_md5 is None else _read_if_present(storage.join(directory, PARTS_COPY))
    if parts is None or compute_md5(parts) != parts_md5:
        return Provenance(dataset=manifest)
    return Provenance(
        dataset=manifest, parts=parts, articles=_read_if_present(storage.join(directory, ARTICLES_COPY))
    )


def _read_if_present(path: str) -> bytes | None:
    try:
        return storage.read_bytes(path)
    except MissingInputError:
        return None
